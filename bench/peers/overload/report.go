package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spillway-go/spillway/bench/peers/table"
)

// print writes the rows as one markdown table, with what is needed to read it.
func (m matrix) print(w io.Writer, rows []*row, loadBefore string) error {
	fmt.Fprintf(w, "%s\n\n", table.Machine())
	if m.span < full.span {
		fmt.Fprint(w, "QUICK: too short to be quoted.\n\n")
	}
	fmt.Fprintf(w, "Goodput: answers within %v as a share of min(offered, capacity), over %v from a cold start, at so many times the capacity.\n"+
		"Times in ms from the scheduled arrival: p50/p99 of all admitted and of the rejected answers, at %gx. Recovery: after %gx for %v comes %gx;\n"+
		"when three quarters of a second began with 99 %% good, or never in %v. Limit: of the gate at the end of %gx. N: slots of the backend.\n\n",
		budget, m.span, m.last(), m.last(), m.span, calmLoad, m.calm, m.last())
	t := table.Table{Left: 4, Header: []string{"N", "service", "gate", "version"}}
	for _, load := range m.loads {
		t.Header = append(t.Header, fmt.Sprintf("%gx", load))
	}
	t.Header = append(t.Header, "admitted", "rejected", "recovery", "limit")
	invalid := 0
	for _, r := range rows {
		cells := []string{fmt.Sprint(r.slots), service(r.exponential), r.kind.Name, version(r.kind.Module)}
		for _, l := range r.loads {
			if !l.valid() {
				invalid++
			}
			cells = append(cells, share(l))
		}
		top := r.loads[len(r.loads)-1]
		t.Add(append(cells, top.admitted.String(), top.rejected.String(), recovered(r.recovery), limit(top.limit))...)
	}
	if err := t.Markdown(w); err != nil {
		return err
	}
	worst := time.Duration(0)
	for _, r := range rows {
		for _, l := range r.loads {
			worst = max(worst, l.lag.p99)
		}
	}
	_, err := fmt.Fprintf(w, "\nINVALID in %d of %d cells, where the generator was late (p99 above %v) or could not send; the worst p99 was %v. Load average %s before, %s after.\n",
		invalid, len(rows)*len(m.loads), budget/10, worst.Round(100*time.Microsecond), loadBefore, table.Load())
	return err
}

func (m matrix) last() float64 { return m.loads[len(m.loads)-1] }

func service(exponential bool) string {
	if exponential {
		return "exponential"
	}
	return "fixed"
}

func version(module string) string {
	if module == "" {
		return ""
	}
	return table.Version(module)
}

// share prints the goodput, and nothing but INVALID for a run that says nothing.
func share(r result) string {
	if !r.valid() {
		return "INVALID"
	}
	return fmt.Sprintf("%.2f", r.goodput)
}

func recovered(r result) string {
	switch {
	case !r.valid():
		return "INVALID"
	case r.recovery < 0:
		return "never"
	}
	return fmt.Sprintf("%.2g s", r.recovery.Seconds())
}

func limit(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// String prints p50/p99 in milliseconds.
func (q quantiles) String() string {
	if q.n == 0 {
		return "-"
	}
	ms := func(d time.Duration) string {
		if d < 10*time.Millisecond {
			return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
		}
		return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond))
	}
	return ms(q.p50) + "/" + ms(q.p99)
}
