package storetest

import (
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// burstExample is soft and hard as one explains them to people.
func burstExample(s limits.Store) error {
	c, p := newClient(s), policy("burst", limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200)})
	passes := func(key string, after time.Duration, want int) {
		c.at(after)
		if n := c.drainedBy(p, key, 1, 1000); n != want {
			c.failf("%d pass for %s, want %d", n, key, want)
		}
	}
	c.at(300 * time.Millisecond)
	if d := c.allowed(charge(p, "a", 100)); d.At(0).OverSoft {
		c.failf("100 of soft 100 are over soft")
	}
	if d := c.allowed(charge(p, "a", 20)); !d.At(0).OverSoft {
		c.failf("120 of soft 100 are not over soft")
	}
	c.remaining(p, "a", 80)
	passes("a", time.Second, 80)    // 120 before: a debt of 20
	passes("a", 2*time.Second, 200) // which is paid
	if d := c.refused(limits.OverLimit, charge(p, "a", 1)); d.At(0).RetryAfter != 2*time.Second || d.At(0).OverSoft {
		c.failf("after 200 none may pass in the next second: %s", tell(d))
	}
	passes("a", 3*time.Second, 0)
	passes("a", 4*time.Second, 200)
	passes("a", 9*time.Second, 200) // unused allowance is not saved

	// A long debt: 950 of soft 100 take nine periods, and the last of them has 50 to give.
	far := policy("far", limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(1000)})
	c.at(500 * time.Millisecond)
	c.allowed(charge(far, "k", 950))
	c.at(time.Second)
	if v := c.look(far, "k", 50); v.RetryAfter != 8*time.Second || v.ResetAfter != 9*time.Second {
		c.failf("50 after a debt of 850: retry %v, reset %v, want 8s, 9s", v.RetryAfter, v.ResetAfter)
	}
	c.at(9 * time.Second)
	c.allowed(charge(far, "k", 50))
	if d := c.refused(limits.OverLimit, charge(far, "k", 1)); d.At(0).RetryAfter != time.Second {
		c.failf("RetryAfter %v when the debt is paid, want 1s", d.At(0).RetryAfter)
	}
	c.at(10 * time.Second)
	c.remaining(far, "k", 1000)
	c.refused(limits.CostTooLarge, charge(far, "k", 1001))
	c.wait(-time.Hour)
	c.remaining(far, "k", 0) // time does not run backwards
	return c.err
}

func burstTotal(s limits.Store) error {
	c := newClient(s)
	p := policy("site", limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(200), Total: limits.Rate{Amount: 500, Per: 10 * time.Second}})
	for i := range 10 {
		c.at(time.Duration(i) * time.Second)
		want := 100
		if i >= 5 {
			want = 0
		}
		if n := c.drainedBy(p, "k", 1, 100); n != want {
			c.failf("%d pass in second %d, want %d", n, i, want)
		}
	}
	if d := c.refused(limits.OverLimit, charge(p, "k", 150)); d.At(0).RetryAfter != 2*time.Second {
		c.failf("RetryAfter %v for 150, want 2s: the first two hundreds have left the run of ten seconds", d.At(0).RetryAfter)
	}
	c.at(10 * time.Second)
	early := c.allowed(charge(p, "k", 100))
	c.refused(limits.OverLimit, charge(p, "k", 1))
	c.refund(early)
	c.allowed(charge(p, "k", 100))

	// The total binds though the burst does not, and the other way round.
	tight := policy("tight total", limits.Burst{Soft: limits.PerSecond(3), Hard: limits.PerSecond(9), Total: limits.PerMinute(10)})
	c.at(time.Minute)
	c.allowed(charge(tight, "k", 9))
	if v := c.look(tight, "k", 1); v.RetryAfter != 3*time.Second {
		c.failf("RetryAfter %v, want 3s: the debt of 6 is paid then", v.RetryAfter)
	}
	c.wait(3 * time.Second)
	c.allowed(charge(tight, "k", 1))
	if v := c.look(tight, "k", 1); v.RetryAfter != 57*time.Second || v.NextAfter != 57*time.Second || v.ResetAfter != time.Minute {
		c.failf("10 of 10 a minute: retry %v, next %v, reset %v, want 57s, 57s, 1m", v.RetryAfter, v.NextAfter, v.ResetAfter)
	}
	return c.err
}

// burstBounds takes at random, and looks at every run of whole periods.
func burstBounds(s limits.Store) error {
	c, r := newClient(s), rand.New(rand.NewPCG(31, 37))
	const soft, hard, total, run, periods = 10, 35, 60, 8, 80
	p := policy("random burst", limits.Burst{
		Soft: limits.PerSecond(soft), Hard: limits.PerSecond(hard), Total: limits.Rate{Amount: total, Per: run * time.Second},
	})
	var passed [100]int64 // by period
	for i := range passed {
		greed := 1 + r.IntN(60) // this often one tries
		for try := range greed {
			c.at(time.Duration(i)*time.Second + time.Duration(try)*time.Millisecond)
			cost := 1 + r.Int64N(3)
			if c.take(charge(p, "k", cost)).Allowed {
				passed[i] += cost
			}
		}
		if passed[i] > hard {
			c.failf("%d pass in one period, of hard %d", passed[i], hard)
		}
		for n, sum := 1, int64(0); n <= i+1; n++ { // the run of n periods that ends here
			sum += passed[i+1-n]
			if most := int64(n*soft + hard - soft); sum > most {
				c.failf("%d pass in %d periods, want at most %d", sum, n, most)
			}
			if n <= run && sum > total {
				c.failf("%d pass in %d periods, of a total of %d in %d", sum, n, total, run)
			}
		}
	}

	// And not less: who takes all there is gets soft on average, or what the total leaves of it.
	for _, v := range []struct {
		rule limits.Burst
		want int
	}{
		{limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(25)}, 10*periods + 15},
		{limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(10)}, 10 * periods},
		{limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(30), Total: limits.Rate{Amount: 60, Per: 8 * time.Second}}, 60 * periods / 8},
		{limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(25), Total: limits.PerSecond(20)}, 10*periods + 10},
		{limits.Burst{Soft: limits.PerSecond(10), Hard: limits.PerSecond(25), Total: limits.PerSecond(4)}, 4 * periods},
	} {
		p, got := policy("greedy "+v.rule.String(), v.rule), 0
		for i := range periods {
			c.at(time.Duration(i) * time.Second)
			got += c.drainedBy(p, "k", 1, 100)
		}
		if got < v.want-15 || got > v.want {
			c.failf("%v: %d pass in %d periods, want about %d", v.rule, got, periods, v.want)
		}
	}
	return c.err
}

// burstRefunds makes it as if what is given back had never been.
func burstRefunds(s limits.Store) error {
	c, p := newClient(s), policy("burst refund", limits.Burst{Soft: limits.PerSecond(100), Hard: limits.PerSecond(300)})
	c.at(0)
	c.allowed(charge(p, "k", 100))
	large := c.allowed(charge(p, "k", 150))
	small := c.allowed(charge(p, "k", 40)) // 290: a debt of 190
	c.at(time.Second)
	c.remaining(p, "k", 0)
	c.refund(small) // 250: a debt of 150
	if v := c.look(p, "k", 50); v.RetryAfter != time.Second {
		c.failf("RetryAfter %v, want 1s: then 50 of soft are free", v.RetryAfter)
	}
	c.refund(large) // 100: none
	c.remaining(p, "k", 300)
	c.allowed(charge(p, "k", 300))
	c.at(3 * time.Second)
	c.remaining(p, "k", 0)
	c.at(4 * time.Second)
	c.remaining(p, "k", 300)
	// What was paid for cannot be had back.
	c.at(10 * time.Second)
	old := c.allowed(charge(p, "l", 50))
	c.at(11 * time.Second)
	c.allowed(charge(p, "l", 150))
	c.refund(old)
	c.remaining(p, "l", 150)
	c.at(12 * time.Second)
	c.remaining(p, "l", 50)
	return c.err
}
