package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/bench/peers/gates"
)

// matrix says which experiments are made.
type matrix struct {
	kinds []gates.Kind
	slots []int
	loads []float64 // in capacities, rising; after the last one comes the recovery
	span  time.Duration
	calm  time.Duration // of the recovery, at half the capacity
	// together bounds the arrivals per second of experiments that run at once. Those of one number of slots, load and kind
	// of service stand next to one another, so that gates are compared under the same weather.
	together float64
}

const calmLoad = 0.5

// row is all that was measured of one gate at one backend.
type row struct {
	cell
	loads    []result // by load
	recovery result
}

// cells lists the experiments, and for each to which row and load it belongs.
func (m matrix) cells() (rows []*row, list []experimentOf) {
	for _, slots := range m.slots {
		for _, exponential := range []bool{false, true} {
			first := len(rows)
			for _, k := range m.kinds {
				rows = append(rows, &row{cell: cell{kind: k, slots: slots, exponential: exponential, seed: 1}, loads: make([]result, len(m.loads))})
			}
			for i, load := range m.loads {
				for _, r := range rows[first:] {
					c := r.cell
					c.phases = []phase{{load, m.span}}
					if i == len(m.loads)-1 {
						c.phases = append(c.phases, phase{calmLoad, m.calm})
					}
					list = append(list, experimentOf{c, r, i})
				}
			}
		}
	}
	return rows, list
}

type experimentOf struct {
	cell
	row  *row
	load int
}

// batches cuts the list where more arrivals would run together than m allows.
func (m matrix) batches(list []experimentOf) [][]experimentOf {
	var batches [][]experimentOf
	sum := 0.0
	for _, e := range list {
		if len(batches) == 0 || sum+e.peak() > m.together {
			batches, sum = append(batches, nil), 0
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], e)
		sum += e.peak()
	}
	return batches
}

// run makes all experiments. Progress goes to log.
func (m matrix) run(log io.Writer) ([]*row, error) {
	rows, list := m.cells()
	batches := m.batches(list)
	for i, batch := range batches {
		fmt.Fprintf(log, "%d of %d: %d experiments, from %d slots at %gx\n", i+1, len(batches), len(batch), batch[0].slots, batch[0].phases[0].load)
		if err := together(batch); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// together runs experiments at the same time and files their results.
func together(batch []experimentOf) error {
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	for i, e := range batch {
		wg.Go(func() {
			answers, limits, err := e.run()
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", e.kind.Name, err)
				return
			}
			results := e.results(answers, limits)
			e.row.loads[e.load] = results[0] // its own place: no other experiment has it
			if len(results) > 1 {
				e.row.recovery = results[1]
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}
