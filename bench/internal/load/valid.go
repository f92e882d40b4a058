package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/measure"
)

// The bounds beyond which the generator was the bottleneck.
const (
	leastSent = 0.99
	mostLag   = 0.1 // of the deadline
)

// judge says why a run is invalid, or "".
func (g *generator) judge(run *measure.Run) string {
	all := run.Generator.Sent + run.Generator.Unsent
	switch err := g.firstErr.Load(); {
	case all == 0:
		return "nothing was sent"
	case g.answered.Load() == 0 && err != nil:
		return fmt.Sprintf("no request was answered: %s", shortError(*err))
	case nothingWorked(run):
		return "no request succeeded, and not for lack of room: " + reasons(run)
	case float64(run.Generator.Sent) < leastSent*float64(all):
		return fmt.Sprintf("the generator sent %d of %d requests: more than %d were in flight", run.Generator.Sent, all, g.most)
	case run.Generator.LagP99.Duration().Seconds() > mostLag*g.Scenario.Deadline.Seconds():
		return fmt.Sprintf("the generator was late itself: 1 %% of the requests left %v or more after their time; %v is 10 %% of the deadline",
			run.Generator.LagP99.Duration(), time.Duration(mostLag*float64(g.Scenario.Deadline)))
	}
	return ""
}

// nothingWorked tells that requests failed and none succeeded: then the wrong thing was asked for.
func nothingWorked(run *measure.Run) bool {
	c := measure.Sum{}.Counts
	for i := range run.Phases {
		for _, p := range run.Phases[i].Populations {
			for o, n := range p.Counts {
				c[o] += n
			}
		}
	}
	return c[measure.Failed] > 0 && c[measure.OK]+c[measure.Late] == 0
}

// reasons lists why requests failed, the most frequent first.
func reasons(run *measure.Run) string {
	counts := make(map[string]int64)
	for i := range run.Phases {
		for _, p := range run.Phases[i].Populations {
			for reason, n := range p.Reasons {
				counts[reason] += n
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d × %s", counts[name], name)
	}
	return strings.Join(names, ", ")
}

// shortError is the error without the method and URL that net/http puts in front.
func shortError(err error) string {
	if errors.Is(err, ErrRemote) {
		return ErrRemote.Error()
	}
	var inner error = err
	for next := errors.Unwrap(inner); next != nil && len(inner.Error()) > 200; next = errors.Unwrap(inner) {
		inner = next
	}
	return inner.Error()
}
