package tour

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
)

const ms = time.Millisecond

// shots makes a report of n shots.
func shots(n int, shape func(i int) load.Shot) load.Report {
	r := load.Report{Sent: n, Statuses: map[int]int{}}
	for i := range n {
		s := shape(i)
		if s.Status == 0 {
			r.Errors++
		} else {
			r.Statuses[s.Status]++
		}
		r.Success.Max = max(r.Success.Max, s.Latency)
		r.Shots = append(r.Shots, s)
	}
	return r
}

// burstOf is a burst of 25 of which ok pass, refused within `within`.
func burstOf(ok int, within time.Duration) load.Report {
	return shots(25, func(i int) load.Shot {
		if i < ok {
			return load.Shot{Status: http.StatusOK, Latency: 40 * ms, RetryAfter: -1}
		}
		return load.Shot{Status: http.StatusTooManyRequests, Latency: within, RetryAfter: 1}
	})
}

// ordersOf is a burst of 15 orders, whose k-th ends at end(k).
func ordersOf(end func(k int) time.Duration) load.Report {
	return shots(15, func(k int) load.Shot {
		due := time.Duration(k) * 5 * ms
		return load.Shot{
			Due: due, Status: http.StatusCreated, Latency: end(k) - due, RetryAfter: -1,
			Body: fmt.Sprintf(`{"order":%d,"arrival":%d}`, k+3, k+70),
		}
	})
}

func turn(k int) time.Duration { return time.Duration(k)*50*ms + 20*ms }

// overloadOf is six seconds of overload with `good` good answers in each.
func overloadOf(good int) load.Report {
	r := load.Report{
		Sent: 24_000, Statuses: map[int]int{200: 6 * good, 503: 24_000 - 6*good}, Good: 6 * good,
		Success: load.Quantiles{P50: 110 * ms, P99: 135 * ms, Max: 160 * ms},
		Refused: load.Quantiles{P50: ms, P99: 110 * ms, Max: 130 * ms},
	}
	for range 6 {
		r.Seconds = append(r.Seconds, load.Second{Sent: 4000, OK: good, Good: good, Short: 4000 - good})
	}
	return r
}

// Every check is held against a report that should pass and against reports that each break one thing: a check that cannot
// fail would prove nothing about the demo.
func TestChecksPassOnWhatIsPromisedAndFailOnEverythingElse(t *testing.T) {
	changed := func(r load.Report, change func(*load.Report)) load.Report {
		change(&r)
		return r
	}
	status := func(n int) load.Report { return shots(20, func(int) load.Shot { return load.Shot{Status: n} }) }
	for name, c := range map[string]struct {
		err  error
		says string // "" means that the check has to pass
	}{
		"burst as promised":              {checkBurst(burstOf(20, 10*ms)), ""},
		"burst, one too many":            {checkBurst(burstOf(21, 10*ms)), "21 passed"},
		"burst, one too few":             {checkBurst(burstOf(19, 10*ms)), "19 passed"},
		"burst on a slow machine":        {checkBurst(burstOf(21, 210*ms)), ""},
		"burst, slow but still too many": {checkBurst(burstOf(22, 210*ms)), "22 passed"},
		"burst, none refused":            {checkBurst(burstOf(25, 0)), "no request got the status 429"},
		"burst, one without an answer":   {checkBurst(shots(25, func(i int) load.Shot { return load.Shot{Status: min(i, 1) * 200} })), "no answer"},
		"burst, refused with 503": {checkBurst(shots(25, func(i int) load.Shot {
			return load.Shot{Status: []int{200, 503}[i/20]}
		})), "status 503"},

		"steady as promised":  {checkAllPass(status(200), 200), ""},
		"steady, all refused": {checkAllPass(status(429), 200), "0 of 20 got 200"},
		"steady, one refused": {checkAllPass(shots(20, func(i int) load.Shot { return load.Shot{Status: []int{429, 200}[min(i, 1)]} }), 200), "19 of 20"},

		"orders as promised":           {checkTurns(ordersOf(turn)), ""},
		"orders ahead of their turn":   {checkTurns(ordersOf(func(int) time.Duration { return 60 * ms })), "ahead of its turn"},
		"orders by a millisecond":      {checkTurns(ordersOf(func(k int) time.Duration { return turn(k) - time.Duration(k/14)*ms })), "answer 15"},
		"orders too slow":              {checkTurns(ordersOf(func(k int) time.Duration { return 2 * turn(k) })), "long after"},
		"orders on a busy machine":     {checkTurns(ordersOf(func(k int) time.Duration { return turn(k) + 40*ms })), ""},
		"no orders":                    {checkTurns(load.Report{}), "no order"},
		"order kept":                   {checkInOrder(ordersOf(turn)), ""},
		"order kept, sent crosswise":   {checkInOrder(changed(ordersOf(turn), func(r *load.Report) { r.Shots[2], r.Shots[3] = r.Shots[3], r.Shots[2] })), ""},
		"order lost":                   {checkInOrder(changed(ordersOf(turn), func(r *load.Report) { r.Shots[3].Body = `{"order":99,"arrival":73}` })), "arrival 5 got its turn before arrival 4"},
		"order, two with one number":   {checkInOrder(changed(ordersOf(turn), func(r *load.Report) { r.Shots[3].Body = `{"order":5,"arrival":73}` })), "before arrival"},
		"order, an answer that is odd": {checkInOrder(changed(ordersOf(turn), func(r *load.Report) { r.Shots[3].Body = "Hello" })), `"Hello"`},

		"goodput as promised":          {checkGoodput(overloadOf(790)), ""},
		"goodput at the bound":         {checkGoodput(overloadOf(720)), ""},
		"goodput below":                {checkGoodput(overloadOf(719)), "719 per second"},
		"goodput collapsed":            {checkGoodput(overloadOf(40)), "40 per second"},
		"goodput, but late":            {checkGoodput(changed(overloadOf(790), func(r *load.Report) { r.Seconds = overloadOf(100).Seconds })), "100 per second"},
		"goodput, a slow first second": {checkGoodput(changed(overloadOf(790), func(r *load.Report) { r.Seconds[0].Good = 100 })), ""},
		"goodput of nothing":           {checkGoodput(load.Report{}), "0 per second"},
		"served quickly":               {checkAdmitted(overloadOf(790)), ""},
		"served at the bound":          {checkAdmitted(changed(overloadOf(790), func(r *load.Report) { r.Success.P99 = 150 * ms })), "150ms"},
		"served slowly":                {checkAdmitted(changed(overloadOf(790), func(r *load.Report) { r.Success.P99 = 2 * time.Second })), "2s"},
		"nothing served":               {checkAdmitted(load.Report{}), "nothing was served"},
		"shed as promised":             {checkShed(overloadOf(790)), ""},
		"shed with 429":                {checkShed(changed(overloadOf(790), func(r *load.Report) { r.Statuses[429] = 3 })), "status 429"},
		"shed slowly":                  {checkShed(changed(overloadOf(790), func(r *load.Report) { r.Refused.P50 = 90 * ms })), "90ms"},
		"shed without a word":          {checkShed(changed(overloadOf(790), func(r *load.Report) { r.Errors = 7 })), "7 requests got no answer"},
		"nothing shed: no overload":    {checkShed(changed(overloadOf(790), func(r *load.Report) { delete(r.Statuses, 503) })), "no request got the status 503"},
		"an error of the app":          {checkShed(changed(overloadOf(790), func(r *load.Report) { r.Statuses[500] = 1 })), "status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			switch {
			case c.says == "" && c.err != nil:
				t.Errorf("fails with %v", c.err)
			case c.says != "" && c.err == nil:
				t.Errorf("passes, want a failure that says %q", c.says)
			case c.says != "" && !strings.Contains(c.err.Error(), c.says):
				t.Errorf("fails with %v, want it to say %q", c.err, c.says)
			}
		})
	}
}

func TestRetryAfterMustBeThereAndTrue(t *testing.T) {
	if wait, err := retryAfter(burstOf(20, 0)); wait != time.Second || err != nil {
		t.Errorf("retryAfter = %v, %v; want 1s", wait, err)
	}
	for name, seconds := range map[string]int{"missing": -1, "zero": 0, "longer than it takes": 4} {
		r := burstOf(20, 0)
		r.Shots[24].RetryAfter = seconds
		if _, err := retryAfter(r); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if _, err := retryAfter(burstOf(25, 0)); err == nil {
		t.Error("no refusal at all passes")
	}
}
