package pumpkin

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/testlog"
)

// gauge is a signal that a test turns.
type gauge struct {
	mu     sync.Mutex
	levels map[string]float64
}

func (g *gauge) set(name string, level float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.levels == nil {
		g.levels = map[string]float64{}
	}
	g.levels[name] = level
}

func (g *gauge) read() map[string]float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.levels)
}

var overload = AutoRule{ID: "overload", Template: "busy", When: map[string]Levels{"pressure": {High: 0.9, Low: 0.5}}}

func busyConfig(log *testlog.Log) Config {
	busy := Entry{Severity: Major, Message: map[string]string{"en": "Busy."}, Features: map[string]Feature{"search": {Off: 1}, "tips": {Off: 0.5}}}
	return Config{Templates: map[string]Entry{"busy": busy}, Logger: log.Logger()}
}

// automated is an instance with automation, in virtual time.
type automated struct {
	*Pumpkin
	*Auto
	gauge gauge
	log   *testlog.Log
	start time.Time
}

func automate(t *testing.T, q Quorum, rules ...AutoRule) *automated {
	t.Helper()
	a := &automated{log: new(testlog.Log), start: time.Now()}
	a.Pumpkin = open(t, busyConfig(a.log))
	a.gauge.set("pressure", 0.1)
	a.join(t, q, rules...)
	return a
}

func (a *automated) join(t *testing.T, q Quorum, rules ...AutoRule) {
	t.Helper()
	if len(rules) == 0 {
		rules = []AutoRule{overload}
	}
	var err error
	if a.Auto, err = NewAuto(a.Pumpkin, AutoConfig{Rules: rules, Signals: a.gauge.read, Quorum: q}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Auto.Close)
}

// at lets time pass until so long after the start, and half a tick, so that what happens at that tick has happened.
func (a *automated) at(d time.Duration) {
	time.Sleep(time.Until(a.start.Add(d + autoTick/2)))
	synctest.Wait()
}

// share is how much of search is off; -1 when there is no item.
func (a *automated) share() float64 {
	for _, it := range a.Document().Items {
		if it.ID == "overload" {
			return it.Features["search"].Off
		}
	}
	return -1
}

func (a *automated) want(t *testing.T, share float64, state string) {
	t.Helper()
	st := a.Auto.Status()[0]
	if got := a.share(); got != share || st.State != state {
		t.Fatalf("after %v: %g off and %s, want %g and %s; %+v\n%s", time.Since(a.start), got, st.State, share, state, st, a.log)
	}
}

func TestItGoesUpAfterAWhileAndComesDownInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := automate(t, nil)
		a.at(5 * time.Second)
		a.want(t, -1, "ok")
		a.gauge.set("pressure", 0.95) // seen at 6 s
		a.at(15 * time.Second)
		a.want(t, -1, "pending")
		a.at(16 * time.Second)
		a.want(t, 1, "on")
		if d := a.Document(); d.Items[0].Features["tips"].Off != 0.5 || d.Items[0].Message["en"] != "Busy." {
			t.Errorf("%+v", d)
		}
		a.gauge.set("pressure", 0.1) // the load that raised it is gone, for it is up; seen at 17 s
		a.at(76 * time.Second)
		a.want(t, 1, "on")
		a.at(77 * time.Second)
		a.want(t, 1, "clearing") // until 16 s and 2 min
		a.at(135 * time.Second)
		a.want(t, 1, "clearing")
		a.at(136 * time.Second)
		a.want(t, 0.5, "recovering")
		if f := a.Document().Items[0].Features["tips"].Off; f != 0.25 {
			t.Errorf("tips %g off", f)
		}
		a.at(165 * time.Second)
		a.want(t, 0.5, "recovering")
		a.at(166 * time.Second)
		a.want(t, 0.25, "recovering")
		a.at(195 * time.Second)
		a.want(t, 0.25, "recovering")
		a.at(196 * time.Second)
		a.want(t, -1, "ok")
		var did []string
		for _, r := range a.Audit(100) {
			did = append(did, r.Action+" by "+r.Actor+": "+r.Reason)
		}
		slices.Reverse(did)
		if want := []string{
			"auto_raise by auto: by automation: pressure is 0.95, high is 0.9", "auto_step by auto: by automation: comes down, 50 % left",
			"auto_step by auto: by automation: comes down, 25 % left", "auto_lower by auto: by automation: comes down, 25 % left",
		}; !slices.Equal(did, want) {
			t.Errorf("%q, want %q", did, want)
		}
		for _, line := range []string{"automation raises an item", "brings an item down", "automation ends an item", "pressure is 0.95, high is 0.9"} {
			if !strings.Contains(a.log.String(), line) {
				t.Errorf("%q is not logged", line)
			}
		}
		if st := a.Pumpkin.Status().Auto[0]; st.Raised != 1 || st.Lowered != 1 || st.Instances != 1 || st.Needed != 1 || !st.Known {
			t.Errorf("%+v", st)
		}
	})
}

func TestBetweenTheLevelsNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := automate(t, nil)
		a.gauge.set("pressure", 0.899)
		a.at(time.Hour)
		a.want(t, -1, "ok")
		a.gauge.set("pressure", 0.9)
		a.at(time.Hour + 10*time.Second)
		a.gauge.set("pressure", 0.89) // one look too early
		a.at(time.Hour + 11*time.Second)
		a.want(t, -1, "ok")
		a.gauge.set("pressure", 0.9)
		a.at(time.Hour + time.Minute)
		a.gauge.set("pressure", 0.501)
		a.at(5 * time.Hour) // prolonged all the time
		a.want(t, 1, "on")
		if n := len(a.Audit(1000)); n > 200 {
			t.Errorf("%d records in four hours", n)
		}
	})
}

func TestStepsWaitUntilAllIsCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := automate(t, nil)
		a.gauge.set("pressure", 1)
		a.at(11 * time.Second)
		a.want(t, 1, "on")
		a.gauge.set("pressure", 0)
		a.at(131 * time.Second)
		a.want(t, 0.5, "recovering")
		a.gauge.set("pressure", 0.7) // half of the load is back, and it is neither well nor bad
		a.at(10 * time.Minute)
		a.want(t, 0.5, "recovering")
		a.gauge.set("pressure", 0.5)
		a.at(10*time.Minute + 29*time.Second)
		a.want(t, 0.5, "recovering")
		a.at(10*time.Minute + 30*time.Second)
		a.want(t, 0.25, "recovering")
	})
}

// What comes back is held twice as long each time, and for the fourth time in half an hour a person has to look.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := automate(t, nil)
		raise := func() time.Duration {
			a.gauge.set("pressure", 1)
			now := time.Since(a.start).Truncate(autoTick)
			a.at(now + 11*time.Second)
			a.want(t, 1, "on")
			a.gauge.set("pressure", 0)
			return now + 11*time.Second
		}
		for _, hold := range []time.Duration{2, 4, 8} {
			at := raise()
			a.at(at + hold*time.Minute - time.Second)
			a.want(t, 1, "clearing")
			a.at(at + hold*time.Minute)
			a.want(t, 0.5, "recovering") // and a relapse follows
		}
		at := raise()
		if reason := a.Audit(1)[0].Reason; reason != "by automation: pressure is 1, high is 0.9; it came back while coming down" {
			t.Errorf("raised again for %q", reason)
		}
		if st := a.Auto.Status()[0]; !st.Latched || st.Raised != 4 {
			t.Fatalf("%+v", st)
		}
		if n := strings.Count(a.log.String(), "a person has to look"); n != 1 {
			t.Errorf("said %d times", n)
		}
		a.at(at + 3*time.Hour)
		a.want(t, 1, "clearing")
		if _, err := a.Clear("ada", "overload"); err != nil {
			t.Fatal(err)
		}
		a.at(at + 3*time.Hour + time.Second)
		a.want(t, -1, "cleared")
		if a.Auto.Status()[0].Latched {
			t.Error("a person has looked")
		}
	})
}

func TestAPersonWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := automate(t, nil)
		put(t, a.Pumpkin, "overload", entry("By hand."))
		a.gauge.set("pressure", 1)
		a.at(time.Minute)
		a.want(t, 0, "manual") // search is not off
		a.at(61 * time.Minute) // it has expired
		a.want(t, 1, "on")
		if _, err := a.Clear("ada", "overload"); err != nil {
			t.Fatal(err)
		}
		a.at(90 * time.Minute)
		a.want(t, -1, "cleared")
		a.at(92 * time.Minute)
		a.want(t, 1, "on")
		answers(t, call(a.Pumpkin, "PUT", "/force_off/*", `{"ttl":"2h","reason":"calm down"}`), 200, "")
		a.at(93 * time.Minute)
		a.want(t, -1, "force_off")
		answers(t, call(a.Pumpkin, "DELETE", "/force_off/*", ""), 204, "")
		a.at(94 * time.Minute) // at once: nobody has ended the item, only kept automation away
		a.want(t, 1, "on")
		put(t, a.Pumpkin, "overload", entry("By hand."))
		a.gauge.set("pressure", 0)
		a.at(100 * time.Minute)
		a.want(t, 0, "manual")
		for _, r := range a.Audit(1000) {
			if r.Applied == "no" {
				t.Errorf("automation tried %+v", r)
			}
		}
	})
}

func TestWhatIsMissingIsNotWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := automate(t, nil)
		a.gauge.set("pressure", math.NaN())
		a.at(time.Minute)
		a.want(t, -1, "ok")
		a.gauge.set("pressure", 1)
		a.at(80 * time.Second)
		a.want(t, 1, "on")
		a.gauge.set("pressure", math.NaN())
		a.at(5 * time.Minute)
		a.want(t, 1, "on")
		a.at(11 * time.Minute) // its time is over, and nobody could say that it is needed
		a.want(t, -1, "pending")
		a.gauge.set("pressure", 0)
		a.at(20 * time.Minute)
		a.want(t, -1, "ok")
	})
}

func TestAutomationThatStopsLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := automate(t, nil)
		a.gauge.set("pressure", 1)
		a.at(20 * time.Minute)
		a.want(t, 1, "on")
		prolonged := 0
		for _, r := range a.Audit(100) {
			if r.Action == "auto_prolong" {
				prolonged++
			}
		}
		if prolonged != 7 { // each time that half of 5 minutes is over
			t.Errorf("prolonged %d times in 20 minutes", prolonged)
		}
		a.Auto.Close()
		if a.share() != 1 {
			t.Error("ended at once")
		}
		a.at(26 * time.Minute)
		if a.share() != -1 {
			t.Error("outlives automation")
		}
		// Another one takes over what it finds.
		if err := a.Raise(autoActor, "overload", func() Entry { e, _ := a.Template("busy"); e.Reason = "r"; return e }()); err != nil {
			t.Fatal(err)
		}
		a.gauge.set("pressure", 0)
		a.join(t, nil)
		a.at(26*time.Minute + 10*time.Second)
		a.want(t, 1, "clearing")
		a.at(28*time.Minute + 10*time.Second)
		a.want(t, 0.5, "recovering")
	})
}

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	p := open(t, busyConfig(new(testlog.Log)))
	signals := func() map[string]float64 { return nil }
	with := func(change func(*AutoRule)) []AutoRule {
		r := overload
		r.When = maps.Clone(r.When)
		change(&r)
		return []AutoRule{r}
	}
	many := make([]AutoRule, 9)
	for i := range many {
		many[i] = overload
		many[i].ID = fmt.Sprint("r", i)
	}
	for want, rules := range map[string][]AutoRule{
		"needs Rules":                    nil,
		"ID":                             with(func(r *AutoRule) { r.ID = "" }),
		"no prepared text":               with(func(r *AutoRule) { r.Template = "x" }),
		"no signal":                      with(func(r *AutoRule) { r.When = nil }),
		"Low is 0.9 and High 0.5":        with(func(r *AutoRule) { r.When["pressure"] = Levels{High: 0.5, Low: 0.9} }),
		"Low is NaN":                     with(func(r *AutoRule) { r.When["pressure"] = Levels{High: 0.5, Low: math.NaN()} }),
		"High 1.5":                       with(func(r *AutoRule) { r.When["pressure"] = Levels{High: 1.5} }),
		"EnterFor is -1s":                with(func(r *AutoRule) { r.EnterFor = -time.Second }),
		"TTL is 5s":                      with(func(r *AutoRule) { r.TTL = 5 * time.Second }),
		"MinHold is 25h0m0s":             with(func(r *AutoRule) { r.MinHold = 25 * time.Hour }),
		"there twice":                    {overload, overload},
		"automation holds 8 items alrea": many,
	} {
		if _, err := NewAuto(p, AutoConfig{Rules: rules, Signals: signals}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	a, err := NewAuto(p, AutoConfig{Rules: []AutoRule{overload}, Signals: signals})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := NewAuto(p, AutoConfig{Rules: []AutoRule{overload}, Signals: signals}); err == nil {
		t.Error("two of them")
	}
}

// An item that has no place is said once, and comes when there is one.
func TestWhatIsRefusedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := automate(t, nil)
		for i := range 16 {
			put(t, a.Pumpkin, fmt.Sprint("x", i), entry("x"))
		}
		a.gauge.set("pressure", 1)
		a.at(10 * time.Minute)
		a.want(t, -1, "on")
		if st := a.Auto.Status()[0]; st.Refused == "" || st.Raised != 0 || strings.Count(a.log.String(), "cannot raise") != 1 {
			t.Errorf("%+v", st)
		}
		a.at(62 * time.Minute)
		a.want(t, 1, "on")
	})
}
