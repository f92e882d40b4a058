package shed

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limits"
)

func TestInFlightIsRaisedByAdmitAndLoweredByDone(t *testing.T) {
	cfg := fixed(100, Queue{})
	cfg.Limits = []Limit{{Name: "parallel", Rule: limits.InFlight{Max: 2}}, bucket("rate", 5, 1)}
	s := open(t, cfg)
	first, second := admitted(t, s, Request{Client: "a"}), admitted(t, s, Request{Client: "a", Cost: 1})
	r := refused(t, s, Request{Client: "a"}, InFlight)
	if r.Rule != "parallel" || r.RetryAfter < time.Second || len(r.Verdicts) != 1 || r.Verdicts[0].Remaining != 0 {
		t.Errorf("refused by %q, retry after %v, %+v", r.Rule, r.RetryAfter, r.Verdicts)
	}
	admitted(t, s, Request{Client: "b"}).Done(Success) // another client
	if v := first.Verdicts(); len(v) != 1 || v[0].Policy.Name() != "rate" || v[0].Remaining != 4 {
		t.Errorf("the permit carries %+v", v)
	}
	first.Done(Success)
	first.Done(Success) // once is enough
	third := admitted(t, s, Request{Client: "a"})
	refused(t, s, Request{Client: "a"}, InFlight)
	second.Done(Dropped)
	third.Done(Ignored)
	// A refusal by a rate leaves nothing in flight, and a refusal for what is in flight takes nothing from the rate.
	admitted(t, s, Request{Client: "a"}).Done(Success)
	admitted(t, s, Request{Client: "a"}).Done(Success)
	for range 5 {
		refused(t, s, Request{Client: "a"}, OverLimit)
	}
	if n := s.running.Stats().Keys; n > 2 { // balances of nothing, not found yet
		t.Errorf("%d keys are kept with nothing in flight", n)
	}
	if st := s.Status().Rules[0]; st.Admitted != 11 || st.Refused != 2 {
		t.Errorf("%+v", st)
	}
}

// Whatever becomes of a request, what it has raised is lowered: refused by the gate, expired in its line, left, failed.
func TestNothingStaysInFlightThatDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{Capacity: 1, MaxWait: time.Second})
		cfg.Limits = []Limit{
			{Name: "parallel", Rule: limits.InFlight{Max: 10}, Per: Global},
			{Name: "turns", Rule: limits.LeakyBucket{Capacity: 9, Leak: limits.PerSecond(1)}, Excess: Delay, MaxWait: time.Minute, Routes: []string{"slow"}},
		}
		cfg.Routes = []Route{{Name: "slow", Match: "GET /slow"}}
		s := open(t, cfg)
		inFlight := func() int64 {
			d, err := s.running.Peek(context.Background(), time.Now(), []limits.Charge{{Policy: s.current().rules[0].policy}})
			if err != nil {
				t.Fatal(err)
			}
			return 10 - d.At(0).Remaining
		}
		p := admitted(t, s, Request{Client: "a"})
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := s.Admit(ctx, Request{Client: "a"})
			left <- err
		}()
		synctest.Wait()
		if n := inFlight(); n != 2 {
			t.Errorf("%d in flight while one runs and one waits", n)
		}
		refused(t, s, Request{Client: "a"}, QueueFull)
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
		refused(t, s, Request{Client: "a"}, WaitExpired)
		if n := inFlight(); n != 1 {
			t.Errorf("%d in flight while one runs", n)
		}
		p.Done(Success)
		admitted(t, s, Request{Client: "a", Route: "slow"}).Done(Success)
		ctx, leave = context.WithTimeout(t.Context(), 100*ms)
		defer leave()
		if _, err := s.Admit(ctx, Request{Client: "a", Route: "slow"}); err == nil { // its turn comes too late
			t.Error("admitted before its turn")
		}
		if n := inFlight(); n != 0 {
			t.Errorf("%d in flight while nothing runs", n)
		}
	})
}

func TestAShadowNeitherRefusesNorTellsClients(t *testing.T) {
	cfg := fixed(100, Queue{})
	tried, running := bucket("tried", 1, 1), Limit{Name: "running", Rule: limits.InFlight{Max: 1}, Shadow: true}
	tried.Shadow = true
	cfg.Limits = []Limit{tried, running, bucket("acts", 3, 1)}
	s := open(t, cfg)
	for range 3 {
		p := admitted(t, s, Request{Client: "a"})
		if v := p.Verdicts(); len(v) != 1 || v[0].Policy.Name() != "acts" {
			t.Errorf("the permit carries %+v", v)
		}
		defer p.Done(Ignored)
	}
	if r := refused(t, s, Request{Client: "a"}, OverLimit); r.Rule != "acts" || len(r.Verdicts) != 1 {
		t.Errorf("refused by %q with %+v", r.Rule, r.Verdicts)
	}
	for i, want := range []int64{3, 3} { // the second and third pass, and the last is refused by another
		if st := s.Status().Rules[i]; !st.Shadow || st.Admitted != 1 || st.WouldRefuse != want || st.Refused != 0 {
			t.Errorf("%+v, want %d that would be refused", st, want)
		}
	}
	admitted(t, open(t, Config{Limits: []Limit{tried}}), Request{}).Done(Ignored) // nobody known is no reason either
}

func TestPlansHaveTheirOwnNumbersAndAChangeKeepsWhatWasUsed(t *testing.T) {
	cfg := fixed(100, Queue{})
	l := bucket("per-client", 3, 1)
	l.Plans = map[string]limits.Rule{"premium": limits.TokenBucket{Capacity: 6, Refill: limits.PerSecond(1)}}
	cfg.Limits = []Limit{l}
	s := open(t, cfg)
	for range 3 {
		admitted(t, s, Request{Client: "a"}).Done(Success)
	}
	refused(t, s, Request{Client: "a", Plan: "unheard of"}, OverLimit)
	for range 3 {
		p := admitted(t, s, Request{Client: "a", Plan: "premium"})
		if q := p.Verdicts()[0].Policy.Quota(); q != 6 {
			t.Errorf("a premium client has a quota of %d", q)
		}
		p.Done(Success)
	}
	refused(t, s, Request{Client: "a", Plan: "premium"}, OverLimit)
	refused(t, s, Request{Client: "a"}, OverLimit) // back again, and nothing is new
	st := s.Status().Rules[0]
	if st.Admitted != 6 || st.Refused != 3 || st.Plans["premium"] != "token_bucket: {capacity: 6, refill: 1/s}" {
		t.Errorf("%+v", st)
	}
}

func TestALimitForSomeIdentitiesLeavesOthersAlone(t *testing.T) {
	cfg := fixed(100, Queue{})
	l := bucket("anonymous", 1, 1)
	l.For, l.Per = []string{"ip"}, PerIP
	cfg.Limits = []Limit{l}
	s := open(t, cfg)
	ip := netip.MustParseAddr("192.0.2.1")
	for range 3 {
		admitted(t, s, Request{Client: "key:1", By: "api_key", IP: ip}).Done(Success)
		admitted(t, s, Request{IP: ip}).Done(Success)
	}
	admitted(t, s, Request{Client: "ip:192.0.2.1", By: "ip", IP: ip}).Done(Success)
	refused(t, s, Request{Client: "ip:192.0.2.1", By: "ip", IP: ip}, OverLimit)
}

func TestOtherUnitsAreChargedAsFarAsTheyAreKnown(t *testing.T) {
	cfg := fixed(100, Queue{})
	l := Limit{Name: "upload", Rule: limits.TokenBucket{Capacity: 1000, Refill: limits.PerSecond(1)}, Unit: RequestBytes}
	cfg.Limits = []Limit{l, bucket("requests", 10, 1)}
	s := open(t, cfg)
	admitted(t, s, Request{Client: "a"}).Done(Success) // unknown: nothing to charge yet
	p := admitted(t, s, Request{Client: "a", Cost: 2, Amounts: []Amount{{"rows", 5}, {RequestBytes, 600}}})
	if v := p.Verdicts(); v[0].Remaining != 400 || v[1].Remaining != 7 {
		t.Errorf("%+v", v)
	}
	p.Done(Success)
	if r := refused(t, s, Request{Client: "a", Amounts: []Amount{{RequestBytes, 401}}}, OverLimit); r.Rule != "upload" {
		t.Errorf("refused by %q", r.Rule)
	}
	refused(t, s, Request{Client: "a", Amounts: []Amount{{RequestBytes, 1001}}}, CostTooLarge)
	admitted(t, s, Request{Client: "a", Amounts: []Amount{{RequestBytes, 400}}}).Done(Success)
	if st := s.Status().Rules[0]; st.Unit != RequestBytes || st.Admitted != 2 || st.Refused != 2 {
		t.Errorf("%+v", st)
	}
}

func TestWhatGoesOverSoftIsCounted(t *testing.T) {
	cfg := fixed(100, Queue{})
	cfg.Limits = []Limit{{Name: "site", Rule: limits.Burst{Soft: limits.PerDay(2), Hard: limits.PerDay(4)}, Per: Global}}
	s := open(t, cfg)
	for range 4 {
		admitted(t, s, Request{}).Done(Success)
	}
	if st := s.Status().Rules[0]; st.OverSoft != 2 || st.Admitted != 4 {
		t.Errorf("%+v, want 2 of 4 over soft", st)
	}
}

func TestImpossibleLimitsAreRefused(t *testing.T) {
	good := bucket("l", 1, 1)
	for want, change := range map[string]func(*Limit){
		`unit "Request Bytes" is no word`:                        func(l *Limit) { l.Unit = "Request Bytes" },
		`for: clients are never identified by "cookie"`:          func(l *Limit) { l.For = []string{"cookie"} },
		"for: ip is in the list twice":                           func(l *Limit) { l.For = []string{"ip", "ip"} },
		"plans need a balance that belongs to one client":        func(l *Limit) { l.Per, l.Plans = Global, map[string]limits.Rule{"p": l.Rule} },
		`plans: "p": limits: policy "l": token_bucket: no rate`:  func(l *Limit) { l.Plans = map[string]limits.Rule{"p": limits.TokenBucket{}} },
		`plans: "p": only all of a limit's rules can count what`: func(l *Limit) { l.Plans = map[string]limits.Rule{"p": limits.InFlight{Max: 1}} },
		"a shadow cannot delay":                                  func(l *Limit) { l.Shadow, l.Excess = true, Delay },
		"excess: delay works on leaky and token buckets, not on": func(l *Limit) { l.Rule, l.Excess = limits.InFlight{Max: 1}, Delay },
		"what is in flight are requests, not request_bytes":      func(l *Limit) { l.Rule, l.Unit = limits.InFlight{Max: 1}, RequestBytes },
	} {
		l := good
		change(&l)
		if _, err := New(Config{Limits: []Limit{l}}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `shed: limits[0] "l": `) {
			t.Errorf("%v\nwant ... %s ...", err, want)
		}
	}
}

func TestAMachineLowersWhatItRaised(t *testing.T) {
	cfg := fixed(1, Queue{Capacity: 5, MaxWait: time.Second})
	cfg.Limits = []Limit{{Name: "parallel", Rule: limits.InFlight{Max: 2}}}
	m, err := NewMachine(cfg, time.Unix(1_000_000, 0), 1)
	if err != nil {
		t.Fatal(err)
	}
	var first, second, third Job
	req := Request{Client: "a"}
	m.Admit(0, &first, req)
	m.Admit(0, &second, req)
	m.Admit(0, &third, req)
	if first.State != Granted || second.State != Standing || third.State != TurnedAway || third.Rejection.Reason != InFlight {
		t.Fatalf("%v, %v, %v", first.State, second.State, third.State)
	}
	m.Leave(time.Millisecond, &second)
	m.Admit(time.Millisecond, &third, req)
	m.TimeUp(time.Minute, &third)
	if third.Rejection == nil || third.Rejection.Reason != WaitExpired {
		t.Fatalf("%+v", third)
	}
	m.Done(time.Minute, &first, Success)
	for range 3 {
		m.Admit(time.Minute, &first, req)
		m.Done(time.Minute, &first, Success)
		if first.Rejection != nil {
			t.Fatalf("%+v", first.Rejection)
		}
	}
}
