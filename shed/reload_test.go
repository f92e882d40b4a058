package shed

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
)

func reloaded(t testing.TB, s *Shedder, cfg Config) []string {
	t.Helper()
	changes, err := s.Reload(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func TestReloadKeepsTheBalancesOfWhatDidNotChangeAndWhatWasUsedOfWhatDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(100, Queue{})
		cfg.Limits = []Limit{bucket("same", 5, 1), bucket("other", 4, 1)}
		s := open(t, cfg)
		for range 3 {
			admitted(t, s, Request{Client: "a"}).Done(Success)
		}
		next := fixed(100, Queue{})
		next.Limits = []Limit{bucket("same", 5, 1), bucket("other", 10, 1), {Name: "wide", Rule: limits.FixedWindow{Quota: limits.PerMinute(100)}}}
		changes := reloaded(t, s, next)
		want := []string{
			"limit other: rule token_bucket: {capacity: 4, refill: 1/s} -> token_bucket: {capacity: 10, refill: 1/s}",
			"limit wide: added",
		}
		if !slices.Equal(changes, want) {
			t.Errorf("changes: %q", changes)
		}
		p := admitted(t, s, Request{Client: "a"})
		left := map[string]int64{}
		for _, v := range p.Verdicts() {
			left[v.Policy.Name()] = v.Remaining
		}
		p.Done(Success)
		// same: 5-3-1; other: 10-3-1, for three were used under the old rule; wide knows of this one only.
		if left["same"] != 1 || left["other"] != 6 || left["wide"] != 99 {
			t.Errorf("left: %v", left)
		}
		rules := s.Status().Rules
		if rules[0].Admitted != 4 || rules[1].Admitted != 4 || rules[2].Admitted != 1 {
			t.Errorf("counters did not go on: %+v", rules)
		}
		// A smaller rule keeps what was used, and does not owe more than it can.
		next.Limits[1] = bucket("other", 2, 1)
		reloaded(t, s, next)
		if r := refused(t, s, Request{Client: "a"}, OverLimit); r.Rule != "other" {
			t.Errorf("refused by %s", r.Rule)
		}
		time.Sleep(3 * time.Second)
		admitted(t, s, Request{Client: "a"}).Done(Success)
	})
}

// A reload mints nothing: however often the definition goes back and forth, no more passes than the wider rule allows.
func TestReloadingBackAndForthMintsNoQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		narrow, wide := fixed(100, Queue{}), fixed(100, Queue{})
		narrow.Limits, wide.Limits = []Limit{bucket("r", 3, 1)}, []Limit{bucket("r", 5, 1)}
		s := open(t, narrow)
		passed := 0
		for i := range 40 {
			if p, err := s.Admit(t.Context(), Request{Client: "a"}); err == nil {
				p.Done(Success)
				passed++
			}
			cfg := narrow
			if i%2 == 0 {
				cfg = wide
			}
			reloaded(t, s, cfg)
		}
		if passed > 5 {
			t.Errorf("%d passed at once, 5 are allowed at most", passed)
		}
	})
}

func TestReloadThatIsRefusedChangesNothing(t *testing.T) {
	cfg := fixed(1, Queue{Capacity: 3, MaxWait: time.Second})
	cfg.Limits = []Limit{bucket("r", 1, 1)}
	s := open(t, cfg)
	before := s.current()
	broken := errors.New("not with me")
	allow := true
	if err := s.Follow(func(Config) (func(), error) {
		if allow {
			return nil, nil
		}
		return func() { t.Error("committed what another refused") }, broken
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Follow(func(Config) (func(), error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("who objects to the present configuration follows: %v", err)
	}
	for what, change := range map[string]func(*Config){
		"a limit": func(c *Config) { c.Limits = []Limit{{Name: "x"}} },
		"a route": func(c *Config) {
			c.Limits = []Limit{{Name: "x", Rule: limits.InFlight{Max: 1}, Routes: []string{"none"}}}
		},
		"concurrency":   func(c *Config) { c.Concurrency = concurrency.Config{Min: 9, Max: 2} },
		"the queue":     func(c *Config) { c.Queue.MaxWait = -1 },
		"health":        func(c *Config) { c.Health = health.Config{CPU: health.Thresholds{Low: 0.9, High: 0.1}} },
		"whose follows": func(*Config) { allow = false },
	} {
		next := fixed(7, Queue{Capacity: 9, MaxWait: time.Minute})
		change(&next)
		if changes, err := s.Reload(next); err == nil || changes != nil {
			t.Errorf("%s: %v, %v", what, changes, err)
		}
		allow = true
		if st := s.Status(); s.current() != before || st.Limit != 1 || st.QueueCapacity != 3 || st.QueueMaxWait != Duration(time.Second) {
			t.Errorf("%s: %+v", what, st)
		}
	}
	st := s.Status().Reloads
	if st.Failed != 6 || st.Applied != 0 || st.OK || st.Error == "" || st.Last.IsZero() {
		t.Errorf("%+v", st)
	}
	s.ReloadFailed(errors.New("no such file"))
	if st := s.Status().Reloads; st.Failed != 7 || st.Error != "no such file" {
		t.Errorf("%+v", st)
	}
	reloaded(t, s, cfg)
	if st := s.Status().Reloads; st.Applied != 1 || !st.OK || st.Error != "" || len(st.Changes) != 0 {
		t.Errorf("%+v", st)
	}
	s.Close()
	if _, err := s.Reload(cfg); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestReloadKeepsThoseWhoWaitAndWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{Capacity: 5, MaxWait: 10 * time.Second})
		cfg.Limits = []Limit{
			{Name: "at-once", Rule: limits.InFlight{Max: 3}},
			{Name: "smooth", Rule: limits.LeakyBucket{Capacity: 5, Leak: limits.PerSecond(1)}, Excess: Delay, MaxWait: 5 * time.Second, Routes: []string{"turns"}},
		}
		cfg.Routes = []Route{{Name: "turns"}, {Name: "events", LongLived: 2}}
		s := open(t, cfg)
		admitted(t, s, Request{Client: "b", Route: "turns"}).Done(Success) // the turn of now
		running := admitted(t, s, Request{Client: "a"})
		stream := admitted(t, s, Request{Client: "s", Route: "events"})
		var all sync.WaitGroup
		waited := make([]time.Duration, 2)
		start := time.Now()
		for i, route := range []string{"", "turns"} {
			all.Go(func() {
				p, err := s.Admit(t.Context(), Request{Client: "b", Route: route})
				if err != nil {
					t.Errorf("%q: %v", route, err)
					return
				}
				waited[i] = time.Since(start)
				p.Done(Success)
			})
			synctest.Wait()
		}
		next := cfg
		next.Concurrency = concurrency.Config{Algorithm: "fixed", Initial: 2}
		next.Queue = Queue{Capacity: 50, MaxWait: time.Second}
		next.Limits = []Limit{{Name: "at-once", Rule: limits.InFlight{Max: 1}}}
		next.Routes = []Route{{Name: "events", LongLived: 1}}
		reloaded(t, s, next)
		synctest.Wait()
		if st := s.Status(); st.QueueCapacity != 50 || st.QueueMaxWait != Duration(time.Second) {
			t.Errorf("a line for %d, for %v", st.QueueCapacity, time.Duration(st.QueueMaxWait))
		}
		if st := s.Status(); st.Limit != 2 || st.Waiting != 0 {
			t.Errorf("limit %d, %d wait: a second place was free for the one who waited", st.Limit, st.Waiting)
		}
		if st := s.Status().Budgets; len(st) != 1 || st[0].InUse != 1 || st[0].Max != 1 {
			t.Errorf("long-lived: %+v", st)
		}
		refused(t, s, Request{Client: "x", Route: "events"}, Overloaded)
		refused(t, s, Request{Client: "a"}, InFlight) // one runs, and one is the most now
		running.Done(Success)
		admitted(t, s, Request{Client: "a"}).Done(Success)
		all.Wait()
		if waited[0] != 0 || waited[1] != time.Second {
			t.Errorf("waited %v for a place and %v for a turn; want none, for the reload made room, and the second that was promised", waited[0], waited[1])
		}
		// The route is gone for a while; its stream is still counted when it comes back.
		gone := next
		gone.Routes = nil
		reloaded(t, s, gone)
		reloaded(t, s, next)
		refused(t, s, Request{Client: "x", Route: "events"}, Overloaded)
		stream.Done(Ignored)
		admitted(t, s, Request{Client: "x", Route: "events"}).Done(Ignored)
		if st := s.Status(); st.InFlight != 0 || st.Budgets[0].InUse != 0 {
			t.Errorf("something is left: %+v", st)
		}
	})
}

func TestReloadReplacesHealthOnlyIfItChanged(t *testing.T) {
	cfg := Config{Health: health.Config{Checks: []health.Check{{Name: "backlog", Thresholds: health.Thresholds{Low: 1, High: 2},
		Func: func(context.Context) (float64, error) { return 0, nil }}}}}
	s := open(t, cfg)
	before := s.health.Load()
	same := cfg
	same.Health = cfg.Health.Clone()
	same.Queue.Capacity = 7
	reloaded(t, s, same)
	if s.health.Load() != before {
		t.Error("a sampler was replaced by its like")
	}
	same.Health.CPU = health.Thresholds{Low: 0.5, High: 0.6}
	changes := reloaded(t, s, same)
	if s.health.Load() == before || len(changes) != 2 || !strings.HasPrefix(changes[0], "health.cpu") {
		t.Errorf("changes: %q", changes)
	}
}

func TestReloadUnderLoad(t *testing.T) {
	a, b := fixed(4, Queue{Capacity: 10, MaxWait: time.Second}), fixed(2, Queue{Capacity: 3, MaxWait: time.Second})
	a.Limits = []Limit{{Name: "n", Rule: limits.InFlight{Max: 3}}, bucket("r", 1000, 1000)}
	b.Limits = []Limit{{Name: "n", Rule: limits.InFlight{Max: 2}}, bucket("r", 900, 1000)}
	a.Routes, b.Routes = []Route{{Name: "s", LongLived: 2}}, []Route{{Name: "s", LongLived: 1}, {Name: "t"}}
	s := open(t, a)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, client := range []string{"a", "b", "c"} {
		for _, route := range []string{"", "s", "t"} {
			all.Go(func() {
				for ctx.Err() == nil {
					if p, err := s.Admit(ctx, Request{Client: client, Route: route}); err == nil {
						p.Done(Success)
					}
				}
			})
		}
	}
	for i := range 200 {
		reloaded(t, s, []Config{a, b}[i%2])
		s.Status()
	}
	stop()
	all.Wait()
	st := s.Status()
	if st.InFlight != 0 || st.Waiting != 0 || st.Budgets[0].InUse != 0 {
		t.Errorf("something is left: %+v", st)
	}
	for _, client := range []string{"a", "b", "c"} {
		d, err := s.running.Peek(t.Context(), time.Now(), []limits.Charge{{Policy: s.current().rules[0].policy, Key: client}})
		if err != nil || d.At(0).Remaining != 2 {
			t.Errorf("%s: %+v, %v", client, d.At(0), err)
		}
	}
}

func TestFieldsAreSpelledAsInTheFile(t *testing.T) {
	for name, want := range map[string]string{
		"MaxWait": "max_wait", "IPv6Prefix": "ipv6_prefix", "APIKeyHeader": "api_key_header", "CPU": "cpu", "HostCPU": "host_cpu",
		"LongLived": "long_lived", "Per": "per", "TrustedProxies": "trusted_proxies",
	} {
		if got := spelled(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestChangesNameWhatHolds: a line that says 0 where a default holds would alarm whoever reads it.
func TestChangesNameWhatHolds(t *testing.T) {
	bodies := Bodies{MinRate: limits.Rate{Amount: 1 << 10, Per: time.Second, Bytes: true}, Grace: 2 * time.Second, Gather: -1}
	for _, c := range []struct {
		a, b Config
		want []string
	}{
		{Config{}, Config{Bodies: bodies}, []string{"bodies.min_rate 240B/s -> 1KiB/s", "bodies.grace 5s -> 2s", "bodies.gather 16384 -> 0"}},
		{Config{Bodies: bodies}, Config{}, []string{"bodies.min_rate 1KiB/s -> 240B/s", "bodies.grace 2s -> 5s", "bodies.gather 0 -> 16384"}},
		{Config{}, Config{Bodies: Bodies{}.WithDefaults(), Queue: Queue{MaxWait: 500 * time.Millisecond}, Clients: Clients{Unknown: "refuse"}}, nil},
		{Config{Clients: Clients{Identify: []string{"ip"}}}, Config{}, []string{"clients.identify [ip] -> default"}},
		{
			Config{Routes: []Route{{Name: "r", Feature: "reports", Deadline: time.Second}}}, Config{Routes: []Route{{Name: "r", Cost: 1}}},
			[]string{"route r: deadline 1s -> none, feature reports -> none"},
		},
		{Config{Reserve: 0.2}, Config{}, []string{"concurrency.reserve 0.2 -> none"}},
	} {
		if got := changes(c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestChangesNameEverythingThatDiffers(t *testing.T) {
	a := Config{Routes: []Route{{Name: "gone"}, {Name: "r", Cost: 1}}, Limits: []Limit{{Name: "l", Rule: limits.InFlight{Max: 1}}}}
	b := Config{
		Routes:  []Route{{Name: "r", Cost: 5, Priority: Sheddable}},
		Limits:  []Limit{{Name: "l", Rule: limits.InFlight{Max: 1}, Per: Global, Shadow: true, Routes: []string{"r"}}},
		Clients: Clients{Unknown: "shared", Identify: []string{"ip"}},
		Queue:   Queue{MaxWait: time.Second},
	}
	want := []string{
		"clients.identify default -> [ip]", "clients.unknown refuse -> shared",
		"limit l: per client -> global, routes all -> [r], shadow false -> true",
		"route gone: removed", "route r: cost 1 -> 5, priority critical -> sheddable",
		"queue.max_wait 500ms -> 1s",
	}
	if got := changes(a, b); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := changes(b, b); got != nil {
		t.Errorf("no change is %q", got)
	}
}

// knowing is a switch that is told which features there are.
type knowing struct{ told [][]string }

func (k *knowing) FeatureOff(string, string) (string, time.Duration, bool) { return "", 0, false }
func (k *knowing) KnowFeatures(names []string)                             { k.told = append(k.told, names) }

func TestTheSwitchIsToldWhichFeaturesRoutesHave(t *testing.T) {
	k := new(knowing)
	cfg := Config{Features: k, Routes: []Route{{Name: "a", Match: "/a", Feature: "reports"}, {Name: "b", Match: "/b"}}}
	s := open(t, cfg)
	cfg.Routes[1].Feature = "orders"
	reloaded(t, s, cfg)
	if len(k.told) != 2 || !slices.Equal(k.told[0], []string{"reports"}) || !slices.Equal(k.told[1], []string{"reports", "orders"}) {
		t.Errorf("told %q", k.told)
	}
}
