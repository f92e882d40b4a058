package gates

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// forEach runs a test on a cold gate of every kind, in virtual time.
func forEach(t *testing.T, slots int, test func(*testing.T, Kind, *Gate)) {
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := k.Open(slots)
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				test(t, k, g)
			})
		})
	}
}

func TestWhoLeavesMakesRoom(t *testing.T) {
	forEach(t, 4, func(t *testing.T, k Kind, g *Gate) {
		for _, end := range []End{Good, Late, Failed} {
			for i := range 300 {
				leave, ok := g.Enter(context.Background())
				if !ok {
					t.Fatalf("entry %d, one at a time, after ends of %d, was refused", i, end)
				}
				time.Sleep(20 * time.Millisecond)
				leave(end)
			}
		}
	})
}

func TestAFullGateRefusesAndLetsInAgain(t *testing.T) {
	forEach(t, 4, func(t *testing.T, k Kind, g *Gate) {
		if k.Name == "none" || k.Blind {
			t.Skip("does not know how many run")
		}
		var leave []Leave
		for range 1000 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			l, ok := g.Enter(ctx)
			cancel()
			if !ok {
				break
			}
			leave = append(leave, l)
		}
		if limit := g.Limit(); len(leave) != limit || limit < 1 {
			t.Fatalf("%d were let in at a limit of %d", len(leave), limit)
		}
		leave[0](Good)
		if _, ok := g.Enter(context.Background()); !ok {
			t.Error("no room after one has left")
		}
	})
}

// TestAWaitEnds holds whoever waits to MaxWait and to the client's patience.
func TestAWaitEnds(t *testing.T) {
	forEach(t, 1, func(t *testing.T, k Kind, g *Gate) {
		if k.Name == "none" || k.Blind {
			t.Skip("does not know how many run")
		}
		for range g.Limit() {
			g.Enter(context.Background())
		}
		for _, patience := range []time.Duration{50 * time.Millisecond, time.Minute} {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			start := time.Now()
			_, ok := g.Enter(ctx)
			cancel()
			if waited := time.Since(start); ok || waited > min(patience, MaxWait) {
				t.Errorf("admitted %v after %v with a patience of %v", ok, waited, patience)
			}
		}
	})
}
