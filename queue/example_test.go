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
