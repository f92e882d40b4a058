package shed

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/queue"
)

func TestAShortageLastsUntilAllThatRanHasEnded(t *testing.T) {
	var s shortage
	if s.lasts() || s.ended(0) {
		t.Error("a shortage from the start")
	}
	s.begin(10, 2)
	for _, c := range []struct {
		started     time.Duration
		over, lasts bool
	}{
		{11, false, true}, // was let in after it began
		{10, false, true},
		{12, false, true},
		{3, true, false},
		{4, false, false}, // nothing is owed any more
	} {
		if over := s.ended(c.started); over != c.over || s.lasts() != c.lasts {
			t.Errorf("work that started at %d: over %v, lasts %v", c.started, over, s.lasts())
		}
	}
	s.begin(20, 1)
	s.begin(30, 3) // somebody else is turned away
	if s.ended(20) || s.ended(25) || !s.ended(30) {
		t.Error("it is not the last one that counts")
	}
}

func TestRoomIsShortForWhomeverThereIsNone(t *testing.T) {
	for _, c := range []struct {
		name  string
		line  queue.Line
		turn  func(g *gate) *ticket // turns somebody away at 50 ms
		short bool
	}{
		{"there is no line", queue.NewFIFO(0), func(g *gate) *ticket {
			k := newTicket()
			g.Offer(50*ms, k)
			return k
		}, true},
		{"a first look is turned away", queue.NewFIFO(0), func(g *gate) *ticket {
			k := newTicket()
			k.reason = g.Refuses(50*ms, k)
			return k
		}, true},
		{"the line is full", queue.NewFIFO(1), func(g *gate) *ticket {
			g.Offer(50*ms, newTicket())
			if g.shortage.lasts() {
				t.Error("room is short though the first has a place in the line")
			}
			k := newTicket()
			g.Offer(50*ms, k)
			return k
		}, true},
		{"somebody is displaced", queue.NewFair(2), func(g *gate) *ticket {
			first, k, other := newTicket(), newTicket(), newTicket()
			first.Client, k.Client, other.Client = "greedy", "greedy", "modest"
			g.Offer(50*ms, first)
			g.Offer(50*ms, k)
			g.Offer(50*ms, other)
			return k
		}, true},
		{"a wait expires", queue.NewFIFO(1), func(g *gate) *ticket {
			k := newTicket()
			g.Offer(-50*ms, k)
			g.Expire(50 * ms)
			return k
		}, true},
		{"somebody leaves whose time is up", queue.NewFIFO(1), func(g *gate) *ticket {
			k := newTicket()
			g.Offer(-50*ms, k)
			g.Leave(50*ms, k)
			k.reason = WaitExpired
			return k
		}, true},
		{"somebody leaves before", queue.NewFIFO(1), func(g *gate) *ticket {
			k := newTicket()
			g.Offer(0, k)
			g.Leave(50*ms, k)
			k.reason = WaitExpired
			return k
		}, false},
		{"no room would keep the deadline", queue.NewFIFO(1), func(g *gate) *ticket {
			g.latency.add(0, time.Second)
			k := newTicket()
			k.hard = 60 * ms
			g.Offer(50*ms, k)
			return k
		}, false},
	} {
		g := newGateWith(t, 2, c.line, 100*ms)
		running := []*ticket{newTicket(), newTicket()}
		for _, k := range running {
			g.Offer(-100*ms, k)
		}
		if k := c.turn(g); k.reason == "" {
			t.Errorf("%s: nobody was turned away; the test proves nothing", c.name)
		}
		if g.shortage.lasts() != c.short {
			t.Errorf("%s: room is short: %v, want %v", c.name, !c.short, c.short)
			continue
		}
		g.Detach(60*ms, running[0].slot, running[0].generation)
		if g.shortage.lasts() != c.short {
			t.Errorf("%s: it is over though one still runs", c.name)
		}
		if g.Done(70*ms, running[1].slot, running[1].generation, Ignored); g.shortage.lasts() {
			t.Errorf("%s: it is not over though nothing runs any more that ran then", c.name)
		}
	}
}

// While twice the limit is on trial nobody needs to be turned away for its work to count: what takes more than before does.
func TestToUseWhatIsOnTrialIsAShortage(t *testing.T) {
	const before = 60
	g := newGate(t, 1, 0, 100*ms)
	e, err := concurrency.New(concurrency.Config{Initial: before})
	if err != nil {
		t.Fatal(err)
	}
	g.estimate = e
	for range before {
		e.Observe(time.Second, concurrency.Sample{Latency: time.Second, Usual: time.Second, Short: true, InFlight: before})
	}
	if e.Eased(time.Second, 0); e.Trial() != before || e.Limit() != 2*before {
		t.Fatalf("limit %d, of which %d were before; the test proves nothing", e.Limit(), e.Trial())
	}
	for i := range 2 * before {
		if g.Offer(2*time.Second, newTicket()); g.shortage.lasts() != (i >= before) {
			t.Fatalf("with %d in flight room is short: %v", i+1, g.shortage.lasts())
		}
	}
}
