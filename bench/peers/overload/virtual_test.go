package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zeromicro/go-zero/core/logx"

	"github.com/spillway-go/spillway/bench/peers/gates"
	"github.com/spillway-go/spillway/bench/peers/table"
)

var whole = flag.Bool("matrix", false, "print the whole matrix, measured in virtual time")

// TestTheMatrixInVirtualTime plays the matrix with the very code of the comparison in a time that stands still while
// anybody computes, so that the figures do not depend on how busy the machine is. Without -matrix it is a corner.
//
// Gates that look at the load of the processors have no place here: it is not that of the virtual time.
func TestTheMatrixInVirtualTime(t *testing.T) {
	logx.Disable() // go-zero prints its use of the machine once a minute
	m := full
	if !*whole {
		m.slots, m.loads, m.span, m.calm = []int{4}, []float64{0.5, 2}, time.Second, time.Second
	}
	m.kinds = slices.DeleteFunc(gates.Kinds(), func(k gates.Kind) bool { return k.Blind })
	before := table.Load()
	rows, list := m.cells()
	for i, e := range list {
		if *whole {
			fmt.Fprintf(os.Stderr, "%d of %d: %s, %d slots at %gx\n", i+1, len(list), e.kind.Name, e.slots, e.phases[0].load)
		}
		synctest.Test(t, func(t *testing.T) {
			if err := together([]experimentOf{e}); err != nil {
				t.Fatal(err)
			}
		})
	}
	var out strings.Builder
	if err := m.print(&out, rows, before); err != nil {
		t.Fatal(err)
	}
	if *whole {
		fmt.Printf("Measured in virtual time. %s", out.String())
	}
	for _, r := range rows {
		for i, l := range r.loads {
			if l.lag.p99 != 0 || !l.valid() {
				t.Errorf("%s at %gx: the generator was late by %v in a time that does not pass", r.kind.Name, m.loads[i], l.lag.p99)
			}
		}
		if g := r.loads[0].goodput; r.kind.Name == "none" && g < 0.99 {
			t.Errorf("goodput %.2f at half the capacity without any gate", g)
		}
	}
}
