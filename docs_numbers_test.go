package spillway_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// desk asks a store of its own for one key, at times since an hour of the clock.
type desk struct {
	t      *testing.T
	store  *limits.Memory
	policy *limits.Policy
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newDesk(t *testing.T, rule limits.Rule) desk {
	t.Helper()
	store, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := limits.NewPolicy("p", rule)
	if err != nil {
		t.Fatal(err)
	}
	return desk{t, store, policy}
}

func (d desk) ask(at time.Duration, cost int64) *limits.Verdict {
	d.t.Helper()
	decision, err := d.store.Take(d.t.Context(), noon.Add(at), []limits.Charge{{Policy: d.policy, Key: "k", Cost: cost}})
	if err != nil {
		d.t.Fatal(err)
	}
	return decision.At(0)
}

// passed says how many of n pass at a time.
func (d desk) passed(at time.Duration, n int) (passed int) {
	d.t.Helper()
	for range n {
		if d.ask(at, 1).Reason == limits.Allowed {
			passed++
		}
	}
	return passed
}

var burstRow = regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$`)

// TestTheNumbersOfTheRulesPageAreTrue works the examples of docs/rules.md out.
func TestTheNumbersOfTheRulesPageAreTrue(t *testing.T) {
	text, err := os.ReadFile("docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	says := func(sentence string) {
		t.Helper()
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), sentence) {
			t.Errorf("docs/rules.md does not say any more: %s", sentence)
		}
	}
	is := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}

	bucket := newDesk(t, limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)})
	says("20 pass at once; one second after it was emptied 5 more; after an idle hour 20 again")
	is("at once", bucket.passed(0, 100), 20)
	is("a second later", bucket.passed(time.Second, 100), 5)
	is("an hour later", bucket.passed(time.Hour, 100), 20)

	turns := newDesk(t, limits.Delay{Rule: limits.LeakyBucket{Capacity: 40, Leak: limits.PerSecond(20)}, MaxWait: 2 * time.Second})
	says("the second after 50 ms, the tenth after 450 ms")
	says("the 42nd is refused")
	for k := range 42 {
		switch v := turns.ask(0, 1); {
		case k < 41 && (v.Reason != limits.Allowed || v.Delay != time.Duration(k)*50*time.Millisecond):
			t.Errorf("number %d: %+v", k+1, v)
		case k == 41 && v.Reason != limits.OverLimit:
			t.Errorf("number 42: %+v", v)
		}
	}

	burst := newDesk(t, limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200), Total: limits.PerMinute(10_000)})
	rows := burstRow.FindAllStringSubmatch(strings.ReplaceAll(string(text), ": ", ""), -1)
	is("rows of the burst", len(rows), 5)
	for _, row := range rows {
		second, _ := strconv.Atoi(row[1])
		asked, _ := strconv.Atoi(row[2])
		passes, _ := strconv.Atoi(row[3])
		is("second "+row[1], burst.passed(time.Duration(second-1)*time.Second, asked), passes)
	}

	fixed := newDesk(t, limits.FixedWindow{Quota: limits.PerMinute(100)})
	says("100 at 12:00:59 and 100 at 12:01:00 both pass")
	is("before the edge", fixed.passed(59*time.Second, 150), 100)
	is("behind it", fixed.passed(60*time.Second, 150), 100)

	sliding := newDesk(t, limits.SlidingWindow{Quota: limits.PerMinute(100)})
	says("With 80 in the last minute and 20 in this one, which is 15 s old, the estimate is 80 × 45/60 + 20 = 80, and 20 more pass")
	is("last minute", sliding.passed(30*time.Second, 80), 80)
	is("this minute", sliding.passed(75*time.Second, 20), 20)
	is("more", sliding.passed(75*time.Second, 100), 20)

	log := newDesk(t, limits.SlidingLog{Quota: limits.PerHour(5)})
	says("each comes back exactly an hour after it was used")
	is("at once", log.passed(time.Minute, 9), 5)
	is("too early", log.passed(61*time.Minute-time.Microsecond, 9), 0)
	is("an hour later", log.passed(61*time.Minute, 9), 5)
}
