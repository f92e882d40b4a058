package arms

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/bench/scenarios"
)

func scenario(t *testing.T) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(`
id: test
app: {slots: 2, service: 20ms}
deadline: 50ms
phases: [{name: a, for: 1s}]
populations: [{name: p, load: 1}]
spillway: |
  concurrency: {algorithm: fixed, initial: 2}
  queue: {capacity: 2, max_wait: 1s}
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// burst sends n requests at the same instant and returns how many were served and refused, and how long the last one took.
func burst(target *Target, n int) (served, refused int, took time.Duration) {
	codes, start := make(chan int, n), time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			r := httptest.NewRequest(http.MethodGet, "/api", nil)
			r.Header.Set("X-Api-Key", "client-"+strconv.Itoa(i))
			r.Header.Set(WorkHeader, strconv.Itoa(int(20*time.Millisecond)))
			r.Header.Set(AtHeader, "0")
			w := httptest.NewRecorder()
			target.Handler.ServeHTTP(w, r)
			codes <- w.Code
		})
	}
	all.Wait()
	close(codes)
	for code := range codes {
		if code == http.StatusOK {
			served++
		} else {
			refused++
		}
	}
	return served, refused, time.Since(start)
}

func TestWhatEachArmDoesWithABurst(t *testing.T) {
	for _, c := range []struct {
		arm             string
		served, refused int
		took            time.Duration
		wasted          time.Duration // of the app's work: answers after the deadline of 50 ms
	}{
		{"none", 8, 0, 80 * time.Millisecond, 80 * time.Millisecond},
		{"static", 2, 6, 20 * time.Millisecond, 0},
		{"spillway", 4, 4, 40 * time.Millisecond, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			work, wasted := time.Duration(0), time.Duration(0)
			target, err := New(scenario(t), c.arm, time.Now(), func(_, d time.Duration, vain bool) {
				mu.Lock()
				defer mu.Unlock()
				work += d
				if vain {
					wasted += d
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			served, refused, took := burst(target, 8)
			if served != c.served || refused != c.refused || took != c.took {
				t.Errorf("%s: served %d, refused %d in %v; want %d, %d, %v", c.arm, served, refused, took, c.served, c.refused, c.took)
			}
			if work != time.Duration(c.served)*20*time.Millisecond || wasted != c.wasted {
				t.Errorf("%s: worked %v, %v of it in vain, want %v", c.arm, work, wasted, c.wasted)
			}
			if _, _, inFlight := target.Gauge(); inFlight > 0 {
				t.Errorf("%s: %d still in flight", c.arm, inFlight)
			}
		})
	}
}

func TestHealthIsOffWhereTheGeneratorSharesTheProcess(t *testing.T) {
	for _, text := range []string{"", "queue: {capacity: 3}"} {
		s := scenario(t)
		s.Spillway = text
		if cfg, err := Settings(s); err != nil || !cfg.Health.Off {
			t.Errorf("%q: %v, off %v", text, err, cfg.Health.Off)
		}
	}
	s := scenario(t)
	s.Spillway = "queue: {capacity: many}"
	if _, err := New(s, "spillway", time.Now(), nil); err == nil {
		t.Error("settings that cannot be read were taken")
	}
	if _, err := New(s, "magic", time.Now(), nil); err == nil {
		t.Error("an arm that does not exist was taken")
	}
}
