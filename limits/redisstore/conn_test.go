package redisstore

import (
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

// timed is a connection that notes which deadlines are set, and whether it is looked at.
type timed struct {
	net.Conn
	sets   []time.Time
	looked int
}

func (c *timed) Read([]byte) (int, error)              { return 1, nil }
func (c *timed) SetReadDeadline(t time.Time) error     { c.sets = append(c.sets, t); return nil }
func (c *timed) SetWriteDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *timed) SyscallConn() (syscall.RawConn, error) { c.looked++; return stands{}, nil }

// TestALeanDeadlineIsHardlyEarlier: one that is set serves the calls of the next moments, and none is late or more than a
// sixteenth of its time early.
func TestALeanDeadlineIsHardlyEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := new(timed)
		c := &leanConn{Conn: under, begin: time.Now()}
		for _, span := range []time.Duration{50 * time.Millisecond, time.Second, time.Millisecond, 50 * time.Millisecond, 2 * time.Millisecond} {
			before, calls := len(under.sets), 0
			for begin := time.Now(); time.Since(begin) < 4*span; calls++ {
				want := time.Now().Add(span)
				if err := c.SetReadDeadline(want); err != nil {
					t.Fatal(err)
				}
				at := under.sets[len(under.sets)-1]
				if early := want.Sub(at); early < 0 || early > span/16 {
					t.Fatalf("of %v a deadline is early by %v", span, early)
				}
				time.Sleep(span / 1000)
			}
			if set := len(under.sets) - before; set > calls/50 {
				t.Errorf("deadlines of %v were set %d times for %d calls", span, set, calls)
			}
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil || !under.sets[len(under.sets)-1].IsZero() {
			t.Errorf("a deadline was not taken away: %v", err)
		}
		before := len(under.sets)
		_ = c.SetReadDeadline(time.Time{})
		_ = c.SetDeadline(time.Time{})
		if len(under.sets) != before {
			t.Error("what is not set was taken away")
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
		if len(under.sets) != before+2 {
			t.Errorf("both deadlines were set %d times", len(under.sets)-before)
		}
		past := time.Now().Add(-time.Second)
		if _ = c.SetReadDeadline(past); !under.sets[len(under.sets)-1].Equal(past) {
			t.Error("a deadline that has passed was not set")
		}
	})
}

// TestAConnectionIsLookedAtAfterAMoment: what was heard from just now is taken for granted, and nothing else.
func TestAConnectionIsLookedAtAfterAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := new(timed)
		c := &leanConn{Conn: under, begin: time.Now()}
		look := func(want int, when string) {
			t.Helper()
			if _, err := c.SyscallConn(); err != nil || under.looked != want {
				t.Errorf("%s: looked at %d times, want %d; %v", when, under.looked, want, err)
			}
		}
		look(1, "before anything")
		time.Sleep(time.Second)
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		look(1, "just heard")
		time.Sleep(moment - time.Nanosecond)
		look(1, "within the moment")
		time.Sleep(time.Nanosecond)
		look(2, "after it")
	})
}

// TestARestartIsNoticedBeforeTheNextCall: connections that a server has left while they rested are replaced, and no call fails.
func TestARestartIsNoticedBeforeTheNextCall(t *testing.T) {
	server := redistest.Single(t)
	client, err := Open("redis://"+server.Addr, Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := policy(t, "p", limits.TokenBucket{Capacity: 10, Refill: limits.PerDay(1)})
	for range 3 {
		if _, err := s.Take(ctx, time.Time{}, one(p, "k", 1)); err != nil {
			t.Fatal(err)
		}
		server.Kill()
		server.Restart(t) // takes longer than a moment
	}
}
