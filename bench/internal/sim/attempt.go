package sim

import (
	"net/netip"
	"time"

	"github.com/spillway-go/spillway/bench/internal/schedule"
	"github.com/spillway-go/spillway/shed"
)

// place is where an attempt is, seen from the server.
type place uint8

const (
	outside place = iota // not there yet, refused, or done
	waiting              // in the gate
	working              // in the app
)

// attempt is one attempt of a request. The client's side and the server's end independently: the client may give up while
// the app goes on. Attempts are used again once both have ended and no event names them.
type attempt struct {
	schedule.Arrival
	client   string
	ip       netip.Addr // as the middleware would see it
	tries    int
	answered bool // the client has its answer, or has given up
	place    place
	refs     int // events and timeouts that name it
	start    time.Duration
	end      time.Duration

	// What the gate uses.
	until time.Duration // how long it waits, if it does
	why   string        // why it was refused
	after time.Duration // when to come again, if the refusal said so
	job   shed.Job
}

// pool keeps attempts to be used again.
type pool struct{ free []*attempt }

func (p *pool) get() *attempt {
	if n := len(p.free); n > 0 {
		a := p.free[n-1]
		p.free = p.free[:n-1]
		return a
	}
	a := new(attempt)
	a.job.Owner = a
	return a
}

// put takes an attempt back once nothing names it any more.
func (p *pool) put(a *attempt) {
	if a.refs == 0 && a.answered && a.place == outside {
		a.tries, a.answered = 0, false
		p.free = append(p.free, a)
	}
}

// patience is a queue of attempts in the order in which their clients give up: all of one population have the same patience,
// so that no heap is needed.
type patience struct {
	timeout time.Duration
	queue   []*attempt
	head    int
}

func (p *patience) push(a *attempt) {
	if p.head > 1024 && p.head > len(p.queue)/2 {
		p.queue = append(p.queue[:0], p.queue[p.head:]...)
		p.head = 0
	}
	a.refs++
	p.queue = append(p.queue, a)
}

// next is when the first client gives up, or the end of time.
func (p *patience) next() time.Duration {
	if p.head == len(p.queue) {
		return never
	}
	return p.queue[p.head].At + p.timeout
}

func (p *patience) pop() *attempt {
	a := p.queue[p.head]
	p.queue[p.head] = nil
	if p.head++; p.head == len(p.queue) {
		p.queue, p.head = p.queue[:0], 0
	}
	a.refs--
	return a
}

const never = time.Duration(1<<63 - 1)
