package probe

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"net/http"

	"github.com/spillway-go/spillway/bench/internal/flawed"
	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/load"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

var scenario = &scenarios.Scenario{ID: "preproduction", Kind: "probe", Probe: &scenarios.Probe{Capacity: 20, Refill: 10}}

// red returns the names of the rows that are not green, in virtual time.
func red(t *testing.T, arm, flaw string) (names []string) {
	t.Helper()
	v, err := NewVirtual(scenario.Probe, arm, flaw)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Run(t.Context(), scenario, &Target{Asker: v, Arm: arm, Mode: "sim"})
	if err != nil {
		t.Fatal(err)
	}
	if arm == "spillway" {
		row, err := Refund(scenario, flaw)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	for _, r := range rows {
		if r.Status != judge.Pass {
			names = append(names, r.Name)
		}
	}
	return names
}

func TestTheLibraryKeepsItsQuotasExactly(t *testing.T) {
	if names := red(t, "spillway", ""); names != nil {
		t.Errorf("red: %q", names)
	}
	if names := red(t, "none", ""); names != nil {
		t.Errorf("checks that an open door passes: %q", names)
	}
}

func TestFlawsTurnNamedRowsRed(t *testing.T) {
	for flaw, row := range map[string]string{
		flawed.NoRefund: "what was turned away costs no quota", flawed.FloatBucket: "a steady stream after emptying",
	} {
		if names := red(t, "spillway", flaw); len(names) != 1 || names[0] != row {
			t.Errorf("flaw %s: red are %q, want %q", flaw, names, row)
		}
	}
}

// servers makes two servers in this process; shared tells whether they share their quotas.
func servers(t *testing.T, shared bool, capacity, refill int64) []load.Sender {
	t.Helper()
	var all []load.Sender
	var store limits.Store
	for range 2 {
		cfg := Settings(&scenarios.Probe{Capacity: capacity, Refill: refill})
		cfg.Health.Off = true
		if store == nil || !shared {
			m, err := limits.NewMemory(limits.MemoryConfig{})
			if err != nil {
				t.Fatal(err)
			}
			store = m
		}
		cfg.Store = store
		s, err := shed.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		all = append(all, load.Direct{Handler: middleware.Shed(s)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))})
	}
	return all
}

// TestRealServersAreToldApart probes servers as they are found in the world: right, not sharing, too generous, too mean, too
// slow in refilling. Each wrong one must be told by its own row.
func TestRealServersAreToldApart(t *testing.T) {
	for _, c := range []struct {
		what             string
		shared           bool
		capacity, refill int64
		want             [3]judge.Status
	}{
		{"right", true, 20, 10, [3]judge.Status{judge.Pass, judge.Pass, judge.Pass}},
		{"each counts for itself", false, 20, 10, [3]judge.Status{judge.Pass, judge.Pass, judge.Fail}},
		{"quota too large", true, 25, 10, [3]judge.Status{judge.Fail, judge.Fail, judge.Fail}},
		{"quota too small", true, 15, 10, [3]judge.Status{judge.Fail, judge.Fail, judge.Fail}},
		{"rate too low", true, 20, 8, [3]judge.Status{judge.Pass, judge.Fail, judge.Pass}},
	} {
		synctest.Test(t, func(t *testing.T) {
			asker := &Real{Servers: servers(t, c.shared, c.capacity, c.refill), Method: "GET", Path: "/", Timeout: time.Second}
			rows, err := Run(t.Context(), scenario, &Target{Asker: asker, Arm: "spillway", Mode: "handler", Real: true})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range rows {
				if r.Status != c.want[i] {
					t.Errorf("%s: %s: %s (%v), want %s", c.what, r.Name, r.Status, r.Value, c.want[i])
				}
			}
		})
	}
}

// TestOneServerIsNotSoldAsTwo holds that a row says how many servers it asked.
func TestOneServerIsNotSoldAsTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, single := range []bool{false, true} {
			asker := &Real{Servers: servers(t, true, 20, 10)[:2], Method: "GET", Path: "/", Timeout: time.Second}
			if single {
				asker.Servers = asker.Servers[:1]
			}
			rows, err := Run(t.Context(), scenario, &Target{Asker: asker, Arm: judge.Target, Mode: "remote", Real: true, Single: single})
			if err != nil {
				t.Fatal(err)
			}
			last := rows[len(rows)-1]
			if last.Status != judge.Pass || (last.Name == oneServer) != single || strings.Contains(last.Note, "-target2") != single {
				t.Errorf("single %v: %+v", single, last)
			}
		}
	})
}

// slow answers after a while, as many requests at once as there are.
type slow struct{ load.Sender }

func (s slow) Send(ctx context.Context, shot *load.Shot) load.Answer {
	time.Sleep(150 * time.Millisecond)
	return s.Sender.Send(ctx, shot)
}

// TestASlowServerKeepsTheVerdictsThatItEarned: two checks can allow for the time that answers take, the third cannot and says so.
func TestASlowServerKeepsTheVerdictsThatItEarned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asker := &Real{Servers: []load.Sender{slow{servers(t, true, 20, 10)[0]}}, Method: "GET", Path: "/", Timeout: time.Second}
		rows, err := Run(t.Context(), scenario, &Target{Asker: asker, Arm: judge.Target, Mode: "remote", Real: true, Single: true})
		if err != nil || len(rows) != len(checks) {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if rows[0].Status != judge.Pass || rows[1].Status != judge.Pass {
			t.Errorf("%+v", rows[:2])
		}
		// A round is a burst and then the two: 300 ms, and a token comes back each 100 ms.
		if v := rows[2]; v.Status != judge.Invalid || !strings.Contains(v.Note, "21 requests took 300ms at best, in 3 rounds, and a token comes back after 100ms") {
			t.Errorf("%+v", v)
		}
	})
}

func TestAPathThatDoesNotExistIsSaid(t *testing.T) {
	asker := &Real{Servers: []load.Sender{load.Direct{Handler: http.NotFoundHandler()}}, Method: "GET", Path: "/nowhere", Timeout: time.Second}
	if _, err := Run(t.Context(), scenario, &Target{Asker: asker, Arm: "spillway", Mode: "remote", Real: true}); err == nil {
		t.Fatal("a server that answers 404 was judged")
	}
}
