package queue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/queue"
)

// The gate's use of a line: who expired goes first, then whoever comes, then the next gets the permit.
func ExampleFIFO() {
	line := queue.NewFIFO(2)
	for i, name := range []string{"ann", "ben", "cleo"} {
		now := time.Duration(i) * time.Millisecond
		w := &queue.Waiter{Owner: name, Arrived: now, Deadline: now + 100*time.Millisecond}
		if _, ok := line.Push(now, w); !ok {
			fmt.Println(name, "is refused: the line is full")
		}
	}

	now := 100 * time.Millisecond
	for w := line.Expire(now); w != nil; w = w.Next {
		fmt.Println(w.Owner, "has waited too long")
	}
	fmt.Println("next is", line.Pop(now).Owner)
	// Output:
	// cleo is refused: the line is full
	// ann has waited too long
	// next is ben
}

// Ann asks for everything at once. Ben is served after one of hers, the important one before all, and when the line is full
// it is Ann's last that has to go.
func ExampleFair() {
	line := queue.NewFair(4)
	push := func(name, client string, priority int) {
		w := &queue.Waiter{Owner: name, Client: client, Priority: priority, Deadline: time.Second}
		if displaced, ok := line.Push(0, w); !ok {
			fmt.Println(name, "is refused")
		} else if displaced != nil {
			fmt.Println(displaced.Owner, "gives way to", name)
		}
	}
	for _, name := range []string{"ann 1", "ann 2", "ann 3", "ann 4", "ann 5"} {
		push(name, "ann", 0)
	}
	push("ben 1", "ben", 0)
	push("a payment", "cleo", queue.HighestPriority)
	for w := line.Pop(0); w != nil; w = line.Pop(0) {
		fmt.Println(w.Owner)
	}
	// Output:
	// ann 5 is refused
	// ann 4 gives way to ben 1
	// ann 3 gives way to a payment
	// a payment
	// ann 1
	// ben 1
	// ann 2
}

// Three at once at a bucket that leaks 100 a second: a rule has computed their turns, Leaky keeps them.
func ExampleLeaky() {
	l := queue.NewLeaky(0)
	defer l.Close()
	key := queue.Key{Policy: "orders", Client: "alice"}
	step := 10 * time.Millisecond
	for k := range 3 {
		turn := time.Duration(k) * step // one after the other here, so each waits in full
		waited, err := l.Wait(context.Background(), key, turn, step)
		fmt.Println(waited >= turn, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// true <nil>
}

func ExampleLeaky_Wait_deadline() {
	l := queue.NewLeaky(0)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := l.Wait(ctx, queue.Key{Policy: "orders", Client: "alice"}, 2*time.Second, 0)
	fmt.Println(err)
	// Output: queue: the turn comes after the caller's deadline: context deadline exceeded
}
