package middleware

import (
	"net/http"
	"sync"
	"time"
)

// Retries cost: each call earns a tenth of one, and so many can be saved up; a client begins with that. A service in trouble
// thus gets at most a tenth more calls than it would get without retries, and ten, however many of them fail.
const (
	retryPrice  = 10
	retrySaved  = 10
	firstPause  = 100 * time.Millisecond // before the first retry; doubled for each further one
	longestBack = 10 * time.Second
)

// retryBudget is what a client may spend on retries of calls to one service. The zero value has saved as much as it can.
type retryBudget struct {
	mu    sync.Mutex
	spent int // in tenths
}

// earn notes a call that is no retry.
func (b *retryBudget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-1, 0)
}

// spend takes the price of one retry, if it is there.
func (b *retryBudget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent > retryPrice*(retrySaved-1) {
		return false
	}
	b.spent += retryPrice
	return true
}

// backoff is how long to wait before the n-th retry, counted from 0, when the server does not say: at random up to a bound
// that doubles, so that clients that failed together do not come back together. random draws from [0, n).
func backoff(n int, random func(n int64) int64) time.Duration {
	bound := min(firstPause<<min(n, 10), longestBack)
	return time.Duration(random(int64(bound)) + 1)
}

// again reports whether a call may be sent once more after this answer or error: nothing was done for it, as 429 says, or
// doing it twice is the same as once; and its body can be had again.
func again(r *http.Request, answer *http.Response, err error) bool {
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return false
	}
	switch {
	case err != nil:
		return idempotent(r) && r.Context().Err() == nil
	case answer.StatusCode == http.StatusTooManyRequests:
		return true
	case answer.StatusCode == http.StatusBadGateway, answer.StatusCode == http.StatusServiceUnavailable, answer.StatusCode == http.StatusGatewayTimeout:
		return idempotent(r)
	}
	return false
}

// idempotent is net/http's own reading: methods that are so by definition, and requests that carry a key for it.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != ""
}

// accepted reports whether the service took the call on: what it refuses, or is too broken to answer, is for the throttle.
func accepted(answer *http.Response, err error) bool {
	return err == nil && answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable &&
		answer.StatusCode != http.StatusBadGateway && answer.StatusCode != http.StatusGatewayTimeout
}
