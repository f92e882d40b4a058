package load

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// The bounds of every plan.
const (
	maxCount    = 200_000
	maxRate     = 20_000
	maxDuration = time.Minute
	maxKeys     = 100_000
	maxConns    = 512 // connections, and so requests in flight
)

// Plan says what to send, when, and what counts as good.
type Plan struct {
	// Addr is the server's address, a loopback address and a port.
	Addr string
	// Method and Path are those of every request; a POST has an empty body.
	Method, Path string
	// Count is how many requests are sent: 1 to 200 000.
	Count int
	// Rate is how many are due per second, at most 20 000; 0 means all at once.
	Rate int
	// Keys is how many clients take turns, each with its own X-API-Key made of KeyPrefix and a number; 1 to 100 000.
	Keys      int
	KeyPrefix string
	// Timeout is how long after it was due an answer is waited for; zero means 3 s.
	Timeout time.Duration
	// GoodWithin is how long after it was due a success still counts as good; zero means 250 ms.
	GoodWithin time.Duration
	// Detail asks for a Shot for every request, for plans of at most 1 000.
	Detail bool
}

// withDefaults returns p with its zero fields filled in.
func (p Plan) withDefaults() Plan {
	if p.Timeout == 0 {
		p.Timeout = 3 * time.Second
	}
	if p.GoodWithin == 0 {
		p.GoodWithin = 250 * time.Millisecond
	}
	return p
}

// validate says what is wrong with p, or nothing. It is the child's own guard: whatever asks, nothing but loopback is loaded
// and nothing without a bound.
func (p Plan) validate() error {
	addr, err := netip.ParseAddrPort(p.Addr)
	switch {
	case err != nil:
		return fmt.Errorf("load: address %q is not IP:PORT: %w", p.Addr, err)
	case !addr.Addr().IsLoopback():
		return fmt.Errorf("load: %s is not a loopback address; load goes to this machine only", p.Addr)
	case p.Method != "GET" && p.Method != "POST":
		return fmt.Errorf("load: method %q is neither GET nor POST", p.Method)
	case !strings.HasPrefix(p.Path, "/") || strings.ContainsFunc(p.Path, notToken):
		return fmt.Errorf("load: path %q does not start with / or holds blanks or controls", p.Path)
	case p.KeyPrefix == "" || strings.ContainsFunc(p.KeyPrefix, notToken):
		return fmt.Errorf("load: key prefix %q is empty or holds blanks or controls", p.KeyPrefix)
	case p.Count < 1 || p.Count > maxCount:
		return fmt.Errorf("load: count %d is not 1 to %d", p.Count, maxCount)
	case p.Rate < 0 || p.Rate > maxRate:
		return fmt.Errorf("load: rate %d/s is not 0 to %d", p.Rate, maxRate)
	case p.Keys < 1 || p.Keys > maxKeys:
		return fmt.Errorf("load: %d keys are not 1 to %d", p.Keys, maxKeys)
	case p.due(p.Count) > maxDuration:
		return fmt.Errorf("load: %d requests at %d/s take longer than %v", p.Count, p.Rate, maxDuration)
	case p.Timeout < 0 || p.Timeout > maxDuration || p.GoodWithin < 0:
		return fmt.Errorf("load: timeout %v or good within %v is negative or above %v", p.Timeout, p.GoodWithin, maxDuration)
	case p.Detail && p.Count > 1000:
		return fmt.Errorf("load: detail is for at most 1000 requests, not %d", p.Count)
	}
	return nil
}

func notToken(r rune) bool { return r <= ' ' || r >= 0x7f }

// due returns when request i is due, counted from the start. It is computed from i alone: a late request moves none of
// those behind it.
func (p Plan) due(i int) time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	return time.Duration(i) * time.Second / time.Duration(p.Rate)
}

// key returns the API key of request i.
func (p Plan) key(i int) string {
	return fmt.Sprintf("%s-%d", p.KeyPrefix, i%max(p.Keys, 1))
}

// conns returns how many connections the plan needs: one for each request that can be under way.
func (p Plan) conns() int {
	underWay := p.Count
	if p.Rate > 0 {
		underWay = int(min(int64(p.Rate)*int64(p.Timeout)/int64(time.Second)+1, int64(p.Count)))
	}
	return min(underWay, maxConns)
}
