package load

import (
	"slices"
	"time"
)

// Shot is what became of one request. Times count from the start of the plan.
type Shot struct {
	Due time.Duration
	// Lag is how much later than due it was sent, and Latency how much later than due its answer was there.
	Lag, Latency time.Duration
	// Status is the answer's; 0 means that there was none within the timeout.
	Status int
	// RetryAfter is the header of that name in seconds; -1 means that there was none.
	RetryAfter int
	// Body is how the answer's body begins; only with Plan.Detail.
	Body string
}

// Quantiles sums up a set of durations; all are zero when there were none.
type Quantiles struct {
	P50, P99, Max time.Duration
}

// Second is what became of the requests that were due within one second.
type Second struct {
	Sent, OK, Good, Over, Short int // Over: 429, Short: 503
}

// Report is what a plan came to.
type Report struct {
	// Sent counts all requests, Statuses what they were answered, Errors those without an answer.
	Sent     int
	Statuses map[int]int
	Errors   int
	// Good counts successes that came within Plan.GoodWithin of when they were due.
	Good int
	// Lag is that of all requests. Success and Refused are latencies from the due time: of 2xx and of 429 and 503.
	Lag, Success, Refused Quantiles
	// Seconds splits the requests by when they were due.
	Seconds []Second
	// Shots holds every request in order; only with Plan.Detail.
	Shots []Shot
}

// OK counts the successes.
func (r Report) OK() int {
	n := 0
	for status, count := range r.Statuses {
		if success(status) {
			n += count
		}
	}
	return n
}

func success(status int) bool { return status >= 200 && status < 300 }

func refused(status int) bool { return status == 429 || status == 503 }

// report sums up shots.
func (p Plan) report(shots []Shot) Report {
	r := Report{Sent: len(shots), Statuses: map[int]int{}}
	var lags, successes, refusals []time.Duration
	for _, s := range shots {
		second := int(s.Due / time.Second)
		for len(r.Seconds) <= second {
			r.Seconds = append(r.Seconds, Second{})
		}
		in := &r.Seconds[second]
		in.Sent++
		lags = append(lags, s.Lag)
		switch {
		case success(s.Status):
			successes = append(successes, s.Latency)
			in.OK++
			if s.Latency <= p.GoodWithin {
				in.Good++
				r.Good++
			}
		case refused(s.Status):
			refusals = append(refusals, s.Latency)
		}
		switch s.Status {
		case 0:
			r.Errors++
			continue
		case 429:
			in.Over++
		case 503:
			in.Short++
		}
		r.Statuses[s.Status]++
	}
	r.Lag, r.Success, r.Refused = quantiles(lags), quantiles(successes), quantiles(refusals)
	if p.Detail {
		r.Shots = shots
	}
	return r
}

// quantiles sorts d. A quantile q is the smallest value that at least the share q does not exceed.
func quantiles(d []time.Duration) Quantiles {
	if len(d) == 0 {
		return Quantiles{}
	}
	slices.Sort(d)
	rank := func(percent int) time.Duration { return d[(len(d)*percent+99)/100-1] }
	return Quantiles{P50: rank(50), P99: rank(99), Max: d[len(d)-1]}
}
