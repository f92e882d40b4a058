package edge

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"pgregory.net/rapid"

	"github.com/spillway-go/spillway/limits"
)

// parsed reads a field as a client does, with a parser that is not ours.
func parsed(t interface{ Fatalf(string, ...any) }, lines []string) map[string]*httpsfv.Params {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%q is no structured field: %v", lines, err)
	}
	members := map[string]*httpsfv.Params{}
	for _, m := range list {
		item := m.(httpsfv.Item)
		name := item.Value.(string)
		if members[name] != nil {
			t.Fatalf("%q lists %q twice", lines, name)
		}
		members[name] = item.Params
	}
	return members
}

func integer(p *httpsfv.Params, name string) (n int64, ok bool) {
	v, ok := p.Get(name)
	if !ok {
		return 0, false
	}
	return v.(int64), true
}

func policy(t testing.TB, name string, capacity int64, refill limits.Rate) *limits.Policy {
	t.Helper()
	p, err := limits.NewPolicy(name, limits.TokenBucket{Capacity: capacity, Refill: refill})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// decide charges cost to all policies of a fresh store, the given number of times, and returns the last decision.
func decide(t testing.TB, times int, cost int64, policies ...*limits.Policy) []limits.Verdict {
	t.Helper()
	var charges []limits.Charge
	for _, p := range policies {
		charges = append(charges, limits.Charge{Policy: p, Key: "k", Cost: cost})
	}
	store, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	var last limits.Decision
	for range times {
		d, err := store.Take(t.Context(), now, charges)
		if err != nil {
			t.Fatal(err)
		}
		last = d
	}
	return last.Verdicts()
}

func TestStringsAndIntegersAreWhatTheOracleWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune(` !"#\,;=:abcXYZ019~`)), 1, 20, -1).Draw(t, "name")
		value := rapid.Int64Range(0, maxInteger).Draw(t, "value")
		item := httpsfv.NewItem(name)
		item.Params.Add("q", value)
		want, err := httpsfv.Marshal(httpsfv.List{item})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendInteger(append(appendString(nil, name), ";q="...), value)); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

func TestNothingOutOfRangeIsSent(t *testing.T) {
	for n, want := range map[int64]string{-1: "0", 0: "0", maxInteger: "999999999999999", maxInteger + 1: "999999999999999", 1<<63 - 1: "999999999999999", -1 << 63: "0"} {
		if got := string(appendInteger(nil, n)); got != want {
			t.Errorf("%d is sent as %s, want %s", n, got, want)
		}
	}
	mended := string(appendInteger(append(appendString(nil, "aü\x00\n"), ";q="...), 1))
	if parsed(t, []string{mended}); mended != `"a????";q=1` {
		t.Error(mended)
	}
}

func TestFieldsSayWhatTheRulesSaid(t *testing.T) {
	perClient, site := policy(t, "per-client", 20, limits.PerSecond(5)), policy(t, `si"te\, all`, 1000, limits.PerSecond(10_000))
	hourly := policy(t, "hourly", 2, limits.Rate{Amount: 1, Per: time.Hour})
	for _, row := range []struct {
		why             string
		d               []limits.Verdict
		refused         bool
		policies, state string
	}{
		{"allowed: r counts this request, t is until the next one comes back", decide(t, 1, 1, perClient), false,
			`"per-client";q=20;w=4`, `"per-client";r=19;t=1`},
		{"allowed, free of charge: full, so nothing grows", decide(t, 1, 0, perClient), false,
			`"per-client";q=20;w=4`, `"per-client";r=20`},
		{"a window below a second is one second", decide(t, 1, 1, site), false,
			`"si\"te\\, all";q=1000;w=1`, `"si\"te\\, all";r=999;t=1`},
		{"all rules are listed", decide(t, 1, 1, perClient, site), false,
			`"per-client";q=20;w=4, "si\"te\\, all";q=1000;w=1`, `"per-client";r=19;t=1, "si\"te\\, all";r=999;t=1`},
		{"refused: t is the wait, of those that refused only", decide(t, 3, 1, hourly, perClient), true,
			`"hourly";q=2;w=7200, "per-client";q=20;w=4`, `"hourly";r=0;t=3600, "per-client";r=18`},
		{"nothing is ever allowed: no window", decide(t, 1, 1, policy(t, "none", 0, limits.PerSecond(1))), true, `"none";q=0`, `"none";r=0`},
		{"refused for ever: no time", decide(t, 1, 21, perClient), true,
			`"per-client";q=20;w=4`, `"per-client";r=20`},
		{"refused, though some is left", decide(t, 3, 8, perClient), true,
			`"per-client";q=20;w=4`, `"per-client";r=4;t=1`},
	} {
		h := http.Header{}
		new(fields).set(h, new([2]string), nil, row.d, nil, row.refused)
		if got := h.Get("RateLimit-Policy"); got != row.policies {
			t.Errorf("%s: RateLimit-Policy: %s, want %s", row.why, got, row.policies)
		}
		if got := h.Get("RateLimit"); got != row.state {
			t.Errorf("%s: RateLimit: %s, want %s", row.why, got, row.state)
		}
		parsed(t, h["Ratelimit-Policy"])
		parsed(t, h["Ratelimit"])
	}
}

// header-duplicate: two shedders in one chain add up, and no policy is listed twice.
func TestLimitersFurtherOutKeepTheirLines(t *testing.T) {
	outer, inner := policy(t, "a", 10, limits.PerSecond(1)), policy(t, `b"`, 5, limits.PerSecond(1))
	h := http.Header{}
	f := new(fields)
	f.set(h, new([2]string), nil, decide(t, 1, 1, outer, inner), nil, false)
	f.set(h, new([2]string), nil, decide(t, 1, 1, inner, policy(t, "c", 3, limits.PerSecond(1))), nil, false)
	f.set(h, new([2]string), nil, decide(t, 1, 1, outer, inner), nil, false)
	for _, field := range []string{"Ratelimit-Policy", "Ratelimit"} {
		members := parsed(t, h[field])
		if len(members) != 3 || len(h[field]) != 2 {
			t.Errorf("%s: %q", field, h[field])
		}
	}
}

// Adding to a response's own field must not write into what is remembered for others.
func TestLinesOfOneResponseAreItsOwn(t *testing.T) {
	f, p := new(fields), policy(t, "a", 10, limits.PerSecond(1))
	first, second := http.Header{}, http.Header{}
	f.set(first, new([2]string), nil, decide(t, 1, 1, p), nil, false)
	first.Add("RateLimit-Policy", "more")
	first["Ratelimit-Policy"][0] = "spoiled"
	f.set(second, new([2]string), nil, decide(t, 1, 1, p), nil, false)
	if got := strings.Join(second["Ratelimit-Policy"], "|"); got != `"a";q=10;w=10` {
		t.Errorf("the next response says %s", got)
	}
}

// What is written into a response's own room is what would be said without it, for names of any length, and others do not change it.
func TestWhatIsWrittenIntoAResponsesRoomStays(t *testing.T) {
	f := new(fields)
	for _, name := range []string{"a", strings.Repeat("long", 30)} {
		p := policy(t, name, 1000, limits.PerSecond(1))
		first, second, without := http.Header{}, http.Header{}, http.Header{}
		f.set(first, new([2]string), new(room), decide(t, 1, 1, p), nil, false)
		f.set(second, new([2]string), new(room), decide(t, 2, 1, p), nil, false)
		f.set(without, new([2]string), nil, decide(t, 1, 1, p), nil, false)
		want := `"` + name + `";r=999;t=1`
		if got, other := first.Get("RateLimit"), without.Get("RateLimit"); got != want || other != want {
			t.Errorf("%s and %s, want %s", got, other, want)
		}
		if got := second.Get("RateLimit"); got != `"`+name+`";r=998;t=1` {
			t.Errorf("the next: %s", got)
		}
	}
}

func TestPolicyLineIsTheSameFromResponseToResponse(t *testing.T) {
	f, p := new(fields), policy(t, "a", 10, limits.PerSecond(1))
	lines := map[string]bool{}
	for times := range 15 {
		h := http.Header{}
		f.set(h, new([2]string), nil, decide(t, times+1, 1, p), nil, times >= 10)
		lines[h.Get("RateLimit-Policy")] = true
		if r, _ := integer(parsed(t, h["Ratelimit"])["a"], "r"); r != int64(max(0, 9-times)) {
			t.Errorf("after %d requests r is %d", times+1, r)
		}
	}
	if len(lines) != 1 {
		t.Errorf("policies: %v", lines)
	}
}

func TestMembersOfPoliciesThatAreGoneAreForgotten(t *testing.T) {
	f := new(fields)
	for i := range 3 * maxReady {
		p := policy(t, "a", int64(i+1), limits.PerSecond(1))
		for range 2 {
			if got := f.of(p, nil); got.policy != string(appendPolicy(nil, p, nil)) {
				t.Fatalf("policy %d: %s", i, got.policy)
			}
		}
	}
	if n := len(f.members.all()); n > maxReady {
		t.Errorf("%d are kept, at most %d may", n, maxReady)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	var r ready[string, int]
	for i := range 10 * maxReady {
		key := string([]byte{byte(i), byte(i >> 8)})
		if _, ok := r.all()[key]; ok {
			t.Fatalf("key %d was never kept", i)
		}
		r.keep(key, i)
		if v, ok := r.all()[key]; !ok || v != i {
			t.Fatalf("key %d: %d, %v", i, v, ok)
		}
	}
	if n := len(r.all()); n > maxReady {
		t.Errorf("%d values are kept, at most %d may", n, maxReady)
	}
}

// Numbers that have the same place are not taken for one another.
func TestWhatIsRememberedIsNotMixedUp(t *testing.T) {
	var s spellings
	s.keep(1, 2, "one two")
	for _, other := range [][2]int64{{2, 1}, {1, 2 + int64(len(s))}, {1 + int64(len(s)), 2}} {
		if text, ok := s.find(other[0], other[1]); ok {
			t.Errorf("%v is spelled %q", other, text)
		}
	}
	if text, ok := s.find(1, 2); !ok || text != "one two" {
		t.Errorf("%q, %v", text, ok)
	}
}

func TestFieldsFromBeforeTheDraftAreThoseOfTheTightestRule(t *testing.T) {
	small, large := policy(t, "small", 10, limits.PerSecond(1)), policy(t, "large", 1000, limits.PerSecond(1))
	left := func(p *limits.Policy, remaining int64) limits.Verdict {
		return limits.Verdict{Policy: p, Remaining: remaining, Reason: limits.Allowed}
	}
	refuses := func(p *limits.Policy, reason limits.Reason, wait time.Duration) limits.Verdict {
		return limits.Verdict{Policy: p, Reason: reason, RetryAfter: wait}
	}
	const before, stays, replaced = "X-Ratelimit-Remaining", "outer", "10"
	for _, row := range []struct {
		verdicts []limits.Verdict
		refused  bool
		before   []string // what a limiter further out has said is left
		limit    string
	}{
		{[]limits.Verdict{left(small, 5), left(large, 400)}, false, nil, "1000"},
		{[]limits.Verdict{left(small, 5), left(large, 600)}, false, nil, "10"},
		{[]limits.Verdict{left(small, 5), left(large, 500)}, false, nil, "10"},
		{[]limits.Verdict{left(small, 0), refuses(large, limits.OverLimit, time.Second)}, true, nil, "1000"},
		{[]limits.Verdict{refuses(small, limits.OverLimit, time.Second), left(large, 0)}, true, nil, "10"},
		{[]limits.Verdict{refuses(small, limits.OverLimit, time.Second), refuses(large, limits.OverLimit, time.Minute)}, true, nil, "1000"},
		{[]limits.Verdict{refuses(small, limits.OverLimit, time.Minute), refuses(large, limits.OverLimit, time.Second)}, true, nil, "10"},
		{[]limits.Verdict{refuses(small, limits.OverLimit, time.Minute), refuses(large, limits.CostTooLarge, 0)}, true, nil, "1000"},
		{[]limits.Verdict{left(small, 5)}, false, []string{"4"}, stays},
		{[]limits.Verdict{left(small, 5)}, false, []string{"5"}, replaced},
		{[]limits.Verdict{left(small, 5)}, false, []string{"few"}, replaced},
		{[]limits.Verdict{left(small, 5)}, false, []string{"1", "2"}, replaced},
		{[]limits.Verdict{refuses(small, limits.OverLimit, time.Second)}, true, []string{"-1"}, replaced},
	} {
		h := http.Header{}
		if row.before != nil {
			h["X-Ratelimit-Limit"], h[before] = []string{stays}, row.before
		}
		XRateLimitDelta.set(h, row.verdicts, row.refused)
		if got := h["X-Ratelimit-Limit"]; len(got) != 1 || got[0] != row.limit {
			t.Errorf("%+v, refused %t, after %q: limit %q, want %s", row.verdicts, row.refused, row.before, got, row.limit)
		}
	}
}

// A reset is never told too early, whatever fraction of a second it is now.
func TestResetsAreRoundedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Unix() // a whole second
		time.Sleep(300 * time.Millisecond)
		for reset, want := range map[time.Duration]int64{
			0: 1, 1: 1, 700 * time.Millisecond: 1, 700*time.Millisecond + 1: 2, 1700 * time.Millisecond: 2, 1700*time.Millisecond + 1: 3,
		} {
			for _, v := range []limits.Verdict{{ResetAfter: reset}, {RetryAfter: reset}} {
				h := http.Header{}
				v.Policy = policy(t, "a", 10, limits.PerSecond(1))
				XRateLimitEpoch.set(h, []limits.Verdict{v}, false)
				if got := h.Get("X-RateLimit-Reset"); got != strconv.FormatInt(began+want, 10) {
					t.Errorf("in %v: reset %s, want %d", reset, got, began+want)
				}
			}
		}
	})
}
