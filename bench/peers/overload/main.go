// Overload compares overload controls in front of the same backend, in one process: which share of what the backend could
// do is still done in time when more arrives than it can do.
//
//	go run .          # the whole matrix
//	go run . -quick   # 16 slots, a few loads, short; too short to be quoted
//
// This is by the clock and wants a quiet machine. The same matrix in virtual time, on any machine:
//
//	go test -count=1 -timeout 30m -run TheMatrixInVirtualTime -matrix
//
// The backend has N slots of 20 ms and in front of them a line that knows nothing of clients who have left. Clients leave
// after 250 ms. Arrivals come on an absolute schedule at a constant rate and do not wait for answers; each experiment begins
// with a cold gate. All gates meet the same requests with the same service times.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/peers/gates"
	"github.com/spillway-go/spillway/bench/peers/table"
)

var (
	full = matrix{
		kinds: gates.Kinds(), slots: []int{4, 16, 128}, loads: []float64{0.5, 1.2, 2, 5, 10},
		span: 8 * time.Second, calm: 6 * time.Second, together: 64_000,
	}
	quick = matrix{
		kinds: gates.Kinds(), slots: []int{16}, loads: []float64{1.2, 10},
		span: 2 * time.Second, calm: 2 * time.Second, together: 40_000,
	}
)

func main() {
	short := flag.Bool("quick", false, "a small part of the matrix, short; its figures are too rough to be quoted")
	only := flag.String("gates", "", "only gates whose name contains this")
	slots := flag.Int("slots", 0, "only backends with so many slots (default 4, 16 and 128)")
	rate := flag.Float64("together", 0, "arrivals per second of experiments that run at once (default 64000)")
	flag.Parse()
	m := full
	if *short {
		m = quick
	}
	if *rate > 0 {
		m.together = *rate
	}
	if *slots > 0 {
		m.slots = []int{*slots}
	}
	m.kinds = slices.DeleteFunc(gates.Kinds(), func(k gates.Kind) bool { return !strings.Contains(k.Name, *only) })
	if len(m.kinds) == 0 || *slots < 0 {
		fmt.Fprintf(os.Stderr, "overload: there is no gate with %q in its name, or no backend with %d slots\n", *only, *slots)
		os.Exit(2)
	}
	before := table.Load()
	rows, err := m.run(os.Stderr)
	if err == nil {
		err = m.print(os.Stdout, rows, before)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}
