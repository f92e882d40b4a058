package backend_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/examples/demo/internal/backend"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

func ExampleSlots() {
	slots := backend.NewSlots(2)
	for range 3 { // three arrive at once, two slots: the third starts when the first is done
		begins, ends := slots.Book(start, backend.Item)
		fmt.Println(begins.Sub(start), ends.Sub(start))
	}
	// Output:
	// 0s 20ms
	// 0s 20ms
	// 20ms 40ms
}

func TestCapacityIsExactly800PerSecond(t *testing.T) {
	if backend.Capacity != 800 {
		t.Fatalf("Capacity = %d, want 800", backend.Capacity)
	}
	slots := backend.NewSlots(backend.SlotCount)
	done := 0
	for i := range 8000 { // ten times as much as fits into the second
		_, end := slots.Book(at(time.Duration(i)*time.Millisecond/8), backend.Item)
		if !end.After(at(time.Second)) {
			done++
		}
	}
	// The first slot starts at 0, the 16 start within the first 2 ms: the second's last round is cut for 15 of them.
	if done < 800-15 || done > 800 {
		t.Errorf("%d requests were done within the first second, want 785 to 800", done)
	}

	slots = backend.NewSlots(backend.SlotCount)
	var last time.Time
	for range 8000 { // with all there from the start nothing is lost at the edges
		_, last = slots.Book(start, backend.Item)
	}
	if got := last.Sub(start); got != 10*time.Second {
		t.Errorf("8000 requests took %v, want 10s", got)
	}
}

func TestAReportKeepsOneSlotFor100ms(t *testing.T) {
	slots := backend.NewSlots(2)
	if _, end := slots.Book(at(0), backend.Report); !end.Equal(at(100 * time.Millisecond)) {
		t.Errorf("the report ends at %v, want 100ms", end.Sub(start))
	}
	for i := range 5 { // meanwhile the other slot serves five ordinary requests
		_, end := slots.Book(at(0), backend.Item)
		if want := time.Duration(i+1) * backend.Item; end.Sub(start) != want {
			t.Errorf("request %d ends at %v, want %v", i, end.Sub(start), want)
		}
	}
}

func TestAPauseIsNotSavedUp(t *testing.T) {
	slots := backend.NewSlots(1)
	slots.Book(at(0), backend.Item)
	begins, _ := slots.Book(at(time.Hour), backend.Item)
	if !begins.Equal(at(time.Hour)) {
		t.Errorf("after an idle hour the start is %v, want at once", begins.Sub(start))
	}
	begins, _ = slots.Book(at(time.Hour), backend.Item)
	if want := time.Hour + backend.Item; begins.Sub(start) != want {
		t.Errorf("the one behind starts at %v, want %v", begins.Sub(start), want)
	}
}

// queued is the pool as people draw it: a first-in first-out queue, and n workers that take its head when they are free.
// It moves in steps of one millisecond and keeps no "free at" times, so it shares no arithmetic with Slots.
func queued(n int, arrivals []int, services []int) (starts []int) {
	starts = make([]int, len(arrivals))
	left := make([]int, n)
	var queue []int
	next, begun := 0, 0
	for ms := 0; begun < len(arrivals); ms++ {
		for i := range left {
			left[i] = max(left[i]-1, 0)
		}
		for next < len(arrivals) && arrivals[next] <= ms {
			queue = append(queue, next)
			next++
		}
		for i := range left {
			if left[i] == 0 && len(queue) > 0 {
				starts[queue[0]], left[i] = ms, services[queue[0]]
				queue = queue[1:]
				begun++
			}
		}
	}
	return starts
}

func TestBookingIsAFirstComeFirstServedQueueInFrontOfTheSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "slots")
		arrivals := rapid.SliceOfN(rapid.IntRange(0, 60), 1, 40).Draw(t, "arrivals")
		slices.Sort(arrivals)
		services := rapid.SliceOfN(rapid.IntRange(1, 30), len(arrivals), len(arrivals)).Draw(t, "services")
		slots := backend.NewSlots(n)
		for i, want := range queued(n, arrivals, services) {
			begins, _ := slots.Book(at(time.Duration(arrivals[i])*time.Millisecond), time.Duration(services[i])*time.Millisecond)
			if got := int(begins.Sub(start) / time.Millisecond); got != want {
				t.Fatalf("request %d starts at %d ms, want %d", i, got, want)
			}
		}
	})
}

func TestLateTimersCostNoCapacity(t *testing.T) {
	slots := backend.NewSlots(1)
	var end time.Time
	for i := range 100 {
		// Each caller comes back 7 ms after its predecessor's work had ended, as if a timer had fired late, while
		// others already stand in the queue.
		if i == 0 {
			slots.Book(at(0), backend.Item)
		}
		_, end = slots.Book(at(time.Duration(i)*backend.Item+7*time.Millisecond), backend.Item)
	}
	if want := 101 * backend.Item; end.Sub(start) != want {
		t.Errorf("101 requests took %v, want %v", end.Sub(start), want)
	}
}

func TestWorkBlocksUntilItsSlotIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backend.New(backend.SlotCount)
		begin := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var took []time.Duration
		for range 40 {
			wg.Go(func() {
				b.Work(backend.Item)
				mu.Lock()
				took = append(took, time.Since(begin))
				mu.Unlock()
			})
		}
		synctest.Wait()
		if got := b.Busy(); got != backend.SlotCount {
			t.Errorf("%d slots are busy, want all %d", got, backend.SlotCount)
		}
		wg.Wait()
		slices.Sort(took)
		for i, got := range took {
			if want := time.Duration(i/backend.SlotCount+1) * backend.Item; got != want {
				t.Errorf("request %d took %v, want %v", i, got, want)
			}
		}
		if got := b.Busy(); got != 0 {
			t.Errorf("%d slots are busy at the end, want none", got)
		}
	})
}
