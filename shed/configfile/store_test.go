package configfile

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/testlog"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

func TestMain(m *testing.M) { os.Exit(redistest.M(m).Run()) }

// logs waits until a log has the words.
func logs(t *testing.T, log *testlog.Log, words string) {
	t.Helper()
	wait.Until(t, "the log says "+words, func() bool { return strings.Contains(log.String(), words) })
}

// TestWhatIsAboutAStoreIsWarnedAboutWithoutOne: nobody shall believe that such a limit is one quota for all instances.
func TestWhatIsAboutAStoreIsWarnedAboutWithoutOne(t *testing.T) {
	const file = `limits:
  - {name: money, token_bucket: {capacity: 20, refill: 5/s}, guarantee: strict}
  - {name: all, token_bucket: {capacity: 20, refill: 5/s}, per: global, sub_buckets: 4}
  - {name: some, token_bucket: {capacity: 20, refill: 5/s}, sharing: lease, on_failure: open}
  - {name: own, token_bucket: {capacity: 20, refill: 5/s}}
`
	const redis = "store: {redis: {url: \"redis://127.0.0.1:1/0\"}}\n"
	own, err := limits.NewMemory(limits.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file    string
		program Config
		want    []string
	}{
		{file, Config{}, []string{"f.yaml:2: limits[0].guarantee: does nothing", "f.yaml:3: limits[1].sub_buckets: does nothing",
			"f.yaml:4: limits[2].on_failure: does nothing", "f.yaml:4: limits[2].sharing: does nothing"}},
		{file + redis, Config{}, nil},
		{file, Config{Shed: shed.Config{Store: own}}, nil},
	} {
		got, err := Parse("f.yaml", []byte(c.file), c.program)
		if err != nil || len(got.Warnings) != len(c.want) {
			t.Fatalf("%q, %v", got.Warnings, err)
		}
		log := new(testlog.Log)
		if len(c.want) > 0 {
			_, closeStore, err := got.OpenStore(log.Logger())
			if err != nil {
				t.Fatal(err)
			}
			closeStore()
		}
		for i, w := range c.want {
			if !strings.HasPrefix(got.Warnings[i], w) || !strings.Contains(log.String(), w) {
				t.Errorf("%q, want %q", got.Warnings[i], w)
			}
		}
	}
}

// instance is a Shedder of a file, as a program makes it.
func instance(t *testing.T, file string) (*shed.Shedder, *testlog.Log) {
	t.Helper()
	c, err := Parse(filepath.Join(t.TempDir(), "f.yaml"), []byte(file), Config{})
	if err != nil {
		t.Fatal(err)
	}
	log := new(testlog.Log)
	store, closeStore, err := c.OpenStore(log.Logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeStore)
	c.Shed.Store = store
	s, err := shed.New(c.Shed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, log
}

// TestTwoInstancesOfOneFileShareALimit goes the whole way: file, Redis, two Shedders; then without Redis; then with it again.
func TestTwoInstancesOfOneFileShareALimit(t *testing.T) {
	server := redistest.Single(t)
	file := `
limits:
  - {name: local, fixed_window: {quota: 10/day}, per: global, routes: [local]}
  - {name: open, fixed_window: {quota: 10/day}, per: global, routes: [open], on_failure: open}
  - {name: money, fixed_window: {quota: 10/day}, per: global, routes: [money], guarantee: strict}
routes:
  - {name: local, match: /local}
  - {name: open, match: /open}
  - {name: money, match: /money}
store: {redis: {url: "redis://` + server.Addr + `/0", instances: 2, timeout: 5s}}
`
	a, log := instance(t, file)
	b, _ := instance(t, file)
	admit := func(s *shed.Shedder, route string) shed.Reason {
		p, err := s.Admit(context.Background(), shed.Request{Route: route})
		var r *shed.Rejection
		if errors.As(err, &r) {
			return r.Reason
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Done(shed.Success)
		return ""
	}
	count := func(route string) (n int) {
		for range 10 {
			for _, s := range []*shed.Shedder{a, b} {
				if admit(s, route) == "" {
					n++
				}
			}
		}
		return n
	}
	if n := count("money"); n != 10 {
		t.Errorf("two instances admit %d, want 10 together", n)
	}
	logs(t, log, "appendonly")
	server.Kill()
	// Both have admitted 5 under each limit at most, and have 5 each.
	if n := count("local"); n != 10 {
		t.Errorf("cut off, two instances admit %d, want 5 each", n)
	}
	if n := count("open"); n != 20 {
		t.Errorf("open, %d of 20 pass", n)
	}
	if r := admit(a, "money"); r != shed.StoreUnavailable {
		t.Errorf("strict: %v", r)
	}
	logs(t, log, "cannot decide")
	if st := a.Status().Store; st == nil || st.State != "down" || st.Decisions["local"] == 0 || st.Instances != 2 {
		t.Errorf("%+v", st)
	}
	server.Restart(t)
	logs(t, log, "decides again")
	if r := admit(a, "money"); r != "" {
		t.Errorf("back again: %v", r)
	}
	if n := strings.Count(log.String(), "cannot decide;"); n != 1 {
		t.Errorf("one outage is logged %d times:\n%s", n, log)
	}
}

func TestWhatTheStoreWarnsAboutAtTheStart(t *testing.T) {
	server := redistest.SharedServer(t)
	const warning = "instances is not set"
	for _, c := range []struct {
		limits, redis string
		warns         bool
	}{
		{"", "", true},
		{"", ", instances: 2", false},
		{"", ", instances: 1", false},
		{"", ", heartbeat: true", false},
		{"", ", on_failure: closed", false},
		{", on_failure: local", ", on_failure: closed", true},
		{", on_failure: open", "", false},
		{", guarantee: strict", "", false},
	} {
		_, log := instance(t, `
limits: [{name: a, fixed_window: {quota: 10/day}`+c.limits+`}]
store: {redis: {url: "redis://`+server.Addr+`/0", timeout: 5s`+c.redis+`}}
`)
		if got := strings.Contains(log.String(), warning); got != c.warns {
			t.Errorf("%+v: warned %v\n%s", c, got, log)
		}
	}
}

func TestOpenStoreWithoutASectionIsMemory(t *testing.T) {
	store, closeStore, err := (&Config{}).OpenStore(nil)
	if store != nil || err != nil {
		t.Errorf("%v, %v", store, err)
	}
	closeStore()
}

func TestThePasswordComesFromAFile(t *testing.T) {
	server := redistest.Single(t, "--requirepass", "secret")
	dir := t.TempDir()
	file := filepath.Join(dir, "f.yaml")
	text := `
limits: [{name: a, fixed_window: {quota: 10/day}, per: global, on_failure: closed}]
store: {redis: {url: "redis://` + server.Addr + `/0", timeout: 5s, password_file: redis.password}}
`
	c, err := Parse(file, []byte(text), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.OpenStore(slog.New(slog.DiscardHandler)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	for content, want := range map[string]string{"\n": "is empty", "wrong\n": "check user and password", "secret\n": ""} {
		if err := os.WriteFile(filepath.Join(dir, "redis.password"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		store, closeStore, err := c.OpenStore(slog.New(slog.DiscardHandler))
		if err == nil {
			p, bad := limits.NewPolicy("a", c.Shed.Limits[0].Rule, limits.WhenStoreFails(limits.Closed))
			if bad != nil {
				t.Fatal(bad)
			}
			_, err = store.Take(context.Background(), time.Time{}, []limits.Charge{{Policy: p, Cost: 1}})
			closeStore()
		}
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong\"")) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}

func TestAChangeOfStoreNeedsARestartAndShowsNoPassword(t *testing.T) {
	parse := func(url string) *Config {
		c, err := Parse("f.yaml", []byte("store:\n  redis: {url: \""+url+"\"}\n"), Config{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	was, is := parse("redis://u:geheim@127.0.0.1:1/0"), parse("redis://u:secret@127.0.0.1:2/0")
	err := was.restart(is)
	const want = "f.yaml:1: store: is not what the program started with, which needs a restart; restart the program, or put it back"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %v", err, want)
	}
}
