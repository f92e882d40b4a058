package tour

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
)

// What the demo's configuration promises.
const (
	capacity   = 800 // requests per second
	bucket     = 20  // requests at once of one client
	refill     = 5   // and then per second
	orderEvery = time.Second / 20
	orderTakes = 20 * time.Millisecond

	goodput     = 0.9 // of the capacity, under overload
	admittedP99 = 150 * time.Millisecond
	atOnce      = 50 * time.Millisecond // what half of all refusals take at most
)

// checkBurst: of more requests at once than the bucket holds, exactly what it holds passes. While the burst lasts the
// bucket refills a little, so on a slow machine a request more may pass, and the bound says how many.
func checkBurst(r load.Report) error {
	if err := only(r, http.StatusOK, http.StatusTooManyRequests); err != nil {
		return err
	}
	var lasted time.Duration // until the last refusal was there: all were decided by then
	for _, s := range r.Shots {
		if s.Status == http.StatusTooManyRequests {
			lasted = max(lasted, s.Due+s.Latency)
		}
	}
	ok, most := r.OK(), bucket+int(refill*lasted/time.Second)
	if ok < bucket || ok > most {
		return fmt.Errorf("%d passed, want %d", ok, bucket)
	}
	return nil
}

// retryAfter returns the longest Retry-After among the refusals; each must have one of at least a second and no more than
// the bucket needs for one request, rounded up.
func retryAfter(r load.Report) (time.Duration, error) {
	longest := 0
	for _, s := range r.Shots {
		if s.Status != http.StatusTooManyRequests {
			continue
		}
		if s.RetryAfter != 1 {
			return 0, fmt.Errorf("Retry-After is %d, want 1 (a fifth of a second, rounded up to whole ones)", s.RetryAfter)
		}
		longest = max(longest, s.RetryAfter)
	}
	if longest == 0 {
		return 0, errors.New("nothing was refused")
	}
	return time.Duration(longest) * time.Second, nil
}

// checkAllPass: every request got the status.
func checkAllPass(r load.Report, status int) error {
	if n := r.Statuses[status]; n != r.Sent {
		return fmt.Errorf("%d of %d got %d, the others %v (%d without an answer)", n, r.Sent, status, r.Statuses, r.Errors)
	}
	return nil
}

// checkInOrder: orders get their turn in the order in which they arrived. The demo itself numbers both, since requests that
// are sent one after the other may well overtake each other on their way.
func checkInOrder(r load.Report) error {
	type numbers struct{ Order, Arrival int64 }
	all := make([]numbers, len(r.Shots))
	for i, s := range r.Shots {
		if err := json.Unmarshal([]byte(s.Body), &all[i]); err != nil || all[i].Order == 0 {
			return fmt.Errorf("the answer %q does not say which order it was", s.Body)
		}
	}
	slices.SortFunc(all, func(a, b numbers) int { return cmp.Compare(a.Arrival, b.Arrival) })
	for i := 1; i < len(all); i++ {
		if all[i].Order <= all[i-1].Order {
			return fmt.Errorf("arrival %d got its turn before arrival %d", i+1, i)
		}
	}
	return nil
}

// checkTurns: nobody ran ahead of its turn. The k-th of a burst starts (k-1)/20 s after the first, so its answer cannot be
// there earlier than that after the first was sent, plus what an order takes. And nobody waited much longer: no machine is
// exact there, so a fifth of the whole plus a quarter of a second is forgiven.
func checkTurns(r load.Report) error {
	if len(r.Shots) == 0 {
		return errors.New("no order was sent")
	}
	first := r.Shots[0].Due + r.Shots[0].Lag
	ends := make([]time.Duration, len(r.Shots))
	for i, s := range r.Shots {
		ends[i] = s.Due + s.Latency - first
	}
	slices.Sort(ends)
	for k, end := range ends {
		turn := time.Duration(k)*orderEvery + orderTakes
		if end < turn {
			return fmt.Errorf("answer %d was there after %v, ahead of its turn at %v", k+1, end, turn)
		}
		if late := turn + turn/5 + 250*time.Millisecond; end > late {
			return fmt.Errorf("answer %d was there after %v, long after its turn at %v", k+1, end, turn)
		}
	}
	return nil
}

// goodputOf returns the good answers per second, leaving out the first second, in which the app is filled.
func goodputOf(r load.Report) float64 {
	if len(r.Seconds) < 2 {
		return 0
	}
	n := 0
	for _, s := range r.Seconds[1:] {
		n += s.Good
	}
	return float64(n) / float64(len(r.Seconds)-1)
}

// checkGoodput: under overload at least 0.9 of the capacity is served in time.
func checkGoodput(r load.Report) error {
	if got, want := goodputOf(r), goodput*capacity; got < want {
		return fmt.Errorf("%.0f per second were served in time, want at least %.0f", got, want)
	}
	return nil
}

// checkAdmitted: who is let in is served quickly.
func checkAdmitted(r load.Report) error {
	if r.OK() == 0 {
		return errors.New("nothing was served")
	}
	if r.Success.P99 >= admittedP99 {
		return fmt.Errorf("99 %% of the served were answered within %v, want less than %v", r.Success.P99, admittedP99)
	}
	return nil
}

// checkShed: all others are told that the app is full, and most of them at once.
func checkShed(r load.Report) error {
	if err := only(r, http.StatusOK, http.StatusServiceUnavailable); err != nil {
		return err
	}
	if r.Refused.P50 > atOnce {
		return fmt.Errorf("half of the refusals took up to %v, want at most %v", r.Refused.P50, atOnce)
	}
	return nil
}

// only: every request got one of the statuses, and each occurred.
func only(r load.Report, statuses ...int) error {
	if r.Errors > 0 {
		return fmt.Errorf("%d requests got no answer", r.Errors)
	}
	for status, n := range r.Statuses {
		if !slices.Contains(statuses, status) {
			return fmt.Errorf("%d requests got the status %d", n, status)
		}
	}
	for _, status := range statuses {
		if r.Statuses[status] == 0 {
			return fmt.Errorf("no request got the status %d", status)
		}
	}
	return nil
}
