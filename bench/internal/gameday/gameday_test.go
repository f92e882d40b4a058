package gameday

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/shed/configfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Broken off while it starts, or at any later time, it ends what it has started and gives the partial report.
func TestADayThatIsBrokenOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	report, err := Run(ctx, Options{Quick: true, Acts: []string{"screen"}, Log: io.Discard})
	if err != nil || !report.Partial {
		t.Fatalf("%+v, %v", report, err)
	}
	if err := report.HTML(io.Discard); err != nil {
		t.Error(err)
	}
}

func TestWhatIsMissingIsSaidInOneLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Run(t.Context(), Options{Log: io.Discard})
	if err == nil || !Usage(err) || !strings.Contains(err.Error(), "install it with: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

func TestUnknownActsAreUsage(t *testing.T) {
	if _, err := choose(Options{Acts: []string{"noon"}}); err == nil || !Usage(err) || !strings.Contains(err.Error(), "evening") {
		t.Errorf("%v", err)
	}
}

func TestTheFileIsInOrder(t *testing.T) {
	dir := t.TempDir()
	text := settings(usual, "redis://127.0.0.1:1/0", "127.0.0.1:2")
	for name, text := range map[string]string{"gateway.yaml": text, "admin.token": strings.Repeat("t", 32) + "\n"} {
		if err := write(dir, name, text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := makeKeys(dir, newCrowd().accounts()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "keys.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := configfile.Load(filepath.Join(dir, "gateway.yaml"), configfile.Config{Upstreams: map[string]*url.URL{}}); err != nil {
		t.Error(err)
	}
}

func TestTheScheduleIsOpenAndSpread(t *testing.T) {
	g := &group{members: people("a", "", 4, 1), rate: 3}
	all := schedule(2*time.Second, []*group{g, {members: people("b", "", 1, 2), atOnce: 5}})
	n, at := map[string]int{}, time.Duration(0)
	for _, d := range all {
		if d.at < at {
			t.Fatal("not in order")
		}
		at = d.at
		n[d.who.name]++
	}
	for _, who := range g.members {
		if n[who.name] != 6 {
			t.Errorf("%s: %d requests in 2 s at 3/s", who.name, n[who.name])
		}
	}
	if n["b-0"] != 5 || all[4].at != 0 {
		t.Errorf("at once: %d", n["b-0"])
	}
}

// Each verdict has to be able to fail.
func TestVerdictsCanFail(t *testing.T) {
	begin := time.Now().Add(-10 * time.Second)
	ok := shot{group: "paying", member: "paying-0", status: 200, took: 50 * time.Millisecond, after: -1}
	late := shot{group: "paying", status: 200, took: 3 * time.Second, after: -1}
	told := shot{group: "paying", status: 429, reason: "over_limit", after: 1}
	one, other := newCrowd().paying[0], newCrowd().paying[1]
	mute := shot{group: "paying", status: 503, reason: "overloaded", after: -1}
	for _, row := range []struct {
		what  string
		shots []shot
		judge func(*scene)
		want  judge.Status
	}{
		{"served", []shot{ok, ok}, func(s *scene) { s.served(.99, "paying") }, judge.Pass},
		{"served late", []shot{ok, late}, func(s *scene) { s.served(.99, "paying") }, judge.Fail},
		{"served late, but not since", []shot{late, at(ok, begin.Add(time.Second))}, func(s *scene) { s.servedSince(begin, "", .99, "paying") }, judge.Pass},
		{"nobody asked", nil, func(s *scene) { s.served(.99, "paying") }, judge.Fail},
		{"told", []shot{ok, told}, func(s *scene) { s.told() }, judge.Pass},
		{"not told", []shot{ok, mute}, func(s *scene) { s.told() }, judge.Fail},
		{"some", []shot{ok, told}, func(s *scene) { s.some("", 429, "over_limit", "paying") }, judge.Pass},
		{"none", []shot{ok, mute}, func(s *scene) { s.some("", 503, "overloaded", "paying") }, judge.Fail},
		{"p99", []shot{ok, late}, func(s *scene) { s.p99("paying", deadline) }, judge.Fail},
		{"within", nil, func(s *scene) {
			s.within(perClient, excess{}, counts{Arrived: map[string]int{"paying-0 items": 139}}, one)
		}, judge.Pass},
		{"beyond", nil, func(s *scene) {
			s.within(perClient, excess{}, counts{Arrived: map[string]int{"paying-0 items": 150, "paying-1 items": 10}}, one, other)
		}, judge.Fail},
		{"gets", nil, func(s *scene) {
			s.gets(perClient, 10*time.Second, counts{Arrived: map[string]int{"paying-0 items": 90, "paying-1 items": 100}}, one, other)
		}, judge.Pass},
		{"charged twice", nil, func(s *scene) {
			s.gets(perClient, 10*time.Second, counts{Arrived: map[string]int{"paying-0 items": 100, "paying-1 items": 70}}, one, other)
		}, judge.Fail},
		{"recovers", every100(ok, begin, 0, 100), func(s *scene) { s.recovered(begin, "paying") }, judge.Pass},
		{"recovers in time", append(every100(late, begin, 0, 20), every100(ok, begin, 20, 100)...), func(s *scene) { s.recovered(begin, "paying") }, judge.Pass},
		{"recovers late", append(every100(late, begin, 0, 60), every100(ok, begin, 60, 100)...), func(s *scene) { s.recovered(begin, "paying") }, judge.Fail},
		{"recovers never", every100(told, begin, 0, 100), func(s *scene) { s.recovered(begin, "paying") }, judge.Fail},
	} {
		s := &scene{load: &load{shots: row.shots}, begin: begin, end: begin.Add(10 * time.Second)}
		row.judge(s)
		if len(s.checks) != 1 || s.checks[0].Status != row.want {
			t.Errorf("%s: %+v, want %s", row.what, s.checks, row.want)
		}
	}
}

// Few who were not served do not vanish among many who were.
func TestEachGroupIsJudgedByItself(t *testing.T) {
	s := &scene{load: &load{shots: []shot{{group: "paying", status: 503}}}}
	s.shots = append(s.shots, slices.Repeat([]shot{{group: "free", status: 200}}, 500)...)
	s.served(.99, "paying", "free")
	if len(s.checks) != 2 || s.checks[0].Status != judge.Fail || s.checks[1].Status != judge.Pass {
		t.Errorf("%+v", s.checks)
	}
}

// at is a shot that was due at a moment.
func at(one shot, due time.Time) shot { one.at = due; return one }

// every100 repeats a shot each 100 ms.
func every100(one shot, begin time.Time, from, to int) (all []shot) {
	for i := from; i < to; i++ {
		one.at = begin.Add(time.Duration(i) * 100 * time.Millisecond)
		all = append(all, one)
	}
	return all
}

func TestALateMachineIsNoticed(t *testing.T) {
	const prompt = time.Millisecond
	many := slices.Repeat([]time.Duration{prompt}, 1000)
	for _, row := range []struct {
		what   string
		lags   []time.Duration
		pings  []time.Duration
		late   float64
		unsent int64
		others float64
		quiet  bool
	}{
		{"on time", many, many, .01, 0, .1, true},
		{"a late generator", []time.Duration{prompt, 300 * time.Millisecond}, many, 0, 0, 0, false},
		{"a generator that stood still once", append(slices.Clone(many), time.Second), many, 0, 0, 0, false},
		{"a late machine", many, []time.Duration{prompt, 300 * time.Millisecond}, 0, 0, 0, false},
		{"a machine that stood still once", many, append(slices.Clone(many), time.Second), 0, 0, 0, false},
		{"a service that was late with its work", many, many, .6, 0, 0, false},
		{"a generator that could not send", many, many, 0, 100, 0, false},
		{"a machine that others use", many, many, 0, 0, .6, false},
	} {
		s := &scene{load: &load{}, pings: row.pings, serviceLate: time.Duration(row.late * float64(time.Second)), others: row.others}
		for _, lag := range row.lags {
			s.shots = append(s.shots, shot{lag: lag})
		}
		s.unsent.Store(row.unsent)
		if noise := s.judgeMachine(); (noise == "") != row.quiet {
			t.Errorf("%s: %q", row.what, noise)
		}
	}
}

func TestFramesOfWebSockets(t *testing.T) {
	// The example of RFC 6455, section 1.3.
	if got := accept("dGhlIHNhbXBsZSBub25jZQ=="); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Errorf("accepts with %s", got)
	}
	for _, masked := range []bool{false, true} {
		var wire bytes.Buffer
		if err := writeFrame(&wire, "hello", masked); err != nil {
			t.Fatal(err)
		}
		if text, err := readFrame(bufio.NewReader(&wire)); err != nil || text != "hello" {
			t.Errorf("masked %v: %q, %v", masked, text, err)
		}
	}
}

func TestTheBalancerLeavesAloneWhoCannotBeReached(t *testing.T) {
	live, err := startLive()
	if err != nil {
		t.Fatal(err)
	}
	defer live.server.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	c := &customer{name: "a", from: loopback(20, 1, 1)}
	c.open(newBalancer(gone.Addr().String(), live.addr()))
	defer c.client.CloseIdleConnections()
	for range 4 {
		one := shot{at: time.Now()}
		send(t.Context(), ask{method: "GET", path: "/ping"}, c, &one)
		if one.status != 200 {
			t.Errorf("%+v", one)
		}
	}
}

func TestTheReportSaysMinuteByMinuteWhatCustomersSaw(t *testing.T) {
	begin := time.Now()
	at := func(minute int, group string, status int) shot {
		return shot{at: begin.Add(time.Duration(minute)*time.Minute + time.Second), group: group, status: status}
	}
	r := &Report{Begin: begin, Length: 2*time.Minute + 30*time.Second, scenes: []*scene{
		{act: &act{name: "control"}, begin: begin, load: &load{shots: []shot{at(0, "paying", 0)}}},
		{act: &act{name: "flood"}, begin: begin.Add(time.Minute), load: &load{shots: []shot{
			at(1, "paying", 200), at(1, "paying", 503), at(1, "flood", 429), at(1, "flood", 0), at(2, "flood", 200), at(2, "partner", notCalled),
		}}, checks: []Check{{What: "w", Measured: "m", Bound: "b", Status: judge.Invalid}, {Status: judge.Pass}}},
	}}
	want := []minute{
		{Clock: "0:00", Acts: "control"},
		{Clock: "1:00", Acts: "flood", crowds: crowds{Paying: fates{Asked: 2, Served: 1, Short: 1}, Others: fates{Asked: 2, Over: 1, None: 1}}},
		{Clock: "2:00", crowds: crowds{Others: fates{Asked: 1, Served: 1, NotCalled: 1}}},
	}
	if got := r.minutes(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	var html bytes.Buffer
	if err := r.HTML(&html); err != nil || !strings.Contains(html.String(), `<span class="invalid">w: m</span> <span class="why">(b)</span>`) {
		t.Errorf("the page does not begin with what is bad: %v", err)
	}
	if got := r.Trouble(); len(got) != 1 || got[0] != "INVALID flood: w: m (b)" {
		t.Errorf("%q", got)
	}
	if got := r.section(r.scenes[1]).Status; got != judge.Invalid {
		t.Errorf("an act with an invalid verdict is %s", got)
	}
}

func TestTheReportSaysWhatTheRestWasTold(t *testing.T) {
	shots := []shot{
		{status: 200, after: -1}, {status: 503, reason: "overloaded", after: 2}, {status: 429, reason: "over_limit", after: 1},
		{status: 503, reason: "overloaded", after: 4}, {status: 0, after: -1},
	}
	want := []answer{{2, "503 overloaded", 2, 4}, {1, "429 over_limit", 1, 1}}
	if got := answers(shots); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWhatOthersUseOfTheMachineIsWhatIsNotOurs(t *testing.T) {
	before := cpuTime{all: 1000, used: 500, own: 100}
	for now, want := range map[cpuTime]float64{
		{all: 2000, used: 1400, own: 200}: .8,
		{all: 2000, used: 1400, own: 900}: .1,
		{all: 2000, used: 700, own: 50}:   .2, // a program of ours has been replaced
		{}:                                0,  // there is no /proc
	} {
		if got := now.othersSince(before); got != want {
			t.Errorf("%+v: %v, want %v", now, got, want)
		}
	}
}

func TestALateMachineExcusesOnlyWhatTimeDecides(t *testing.T) {
	for _, noise := range []string{"", "late"} {
		s := &scene{load: &load{}, noise: noise}
		s.expects("counted", false, "", "")
		s.hopes("timed", false, "", "")
		s.hopes("in time", true, "", "")
		if timed, counted := s.failed(); !timed || !counted {
			t.Errorf("failed: %v, %v", timed, counted)
		}
		s.excuse()
		want := []judge.Status{judge.Fail, judge.Fail, judge.Pass}
		if noise != "" {
			want[1] = judge.Invalid
		}
		for i, c := range s.checks {
			if c.Status != want[i] {
				t.Errorf("on a machine that is %q: %+v, want %s", noise, c, want[i])
			}
		}
	}
}
