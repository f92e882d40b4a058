package spillway_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// kitchen is a service behind the file of one recipe.
type kitchen struct {
	t       *testing.T
	handler http.Handler
}

// cook reads the YAML below a heading of docs/recipes.md and puts it in front of a handler. Quotas are in memory, whatever its store.
func cook(t *testing.T, heading string, handler http.HandlerFunc) kitchen {
	t.Helper()
	page, err := os.ReadFile("docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	_, text, found := strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if !found {
		t.Fatalf("docs/recipes.md has no recipe %q", heading)
	}
	return serve(t, text, handler)
}

func serve(t *testing.T, text string, handler http.HandlerFunc) kitchen {
	t.Helper()
	folder := t.TempDir()
	keys := fmt.Sprintf("- {name: basil, digest: %q}\n- {name: paula, digest: %q, plan: premium}\n", shed.DigestKey("key of basil", ""), shed.DigestKey("key of paula", ""))
	if err := os.WriteFile(filepath.Join(folder, "keys.yaml"), []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configfile.Parse(filepath.Join(folder, "spillway.yaml"), []byte(text), configfile.Config{Shed: shed.Config{Health: health.Config{Off: true}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := shed.New(cfg.Shed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	wrap, err := middleware.ShedWithConfig(middleware.Config{Shedder: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return kitchen{t, wrap(handler)}
}

// ask sends one request; the target may begin with a method.
func (k kitchen) ask(target string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	method, path, found := strings.Cut(target, " ")
	if !found {
		method, path = "GET", target
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
	for _, c := range change {
		c(r)
	}
	k.handler.ServeHTTP(w, r)
	return w
}

// passes asks one after the other until somebody is refused, and says how many were not, and why the last was.
func (k kitchen) passes(most int, target string, change ...func(*http.Request)) (n int, reason string) {
	for n < most {
		w := k.ask(target, change...)
		if _, said, refused := strings.Cut(w.Body.String(), `"reason":"`); refused {
			reason, _, _ = strings.Cut(said, `"`)
			return n, reason
		}
		n++
	}
	return n, ""
}

func (k kitchen) want(n int, reason string) func(int, string) {
	return func(gotN int, gotReason string) {
		k.t.Helper()
		if gotN != n || gotReason != reason {
			k.t.Errorf("%d pass and then %q, want %d and %q", gotN, gotReason, n, reason)
		}
	}
}

func answer(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func withKey(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("X-API-Key", key) }
}

// TestTheRecipesDoWhatTheirTextSays plays each recipe of docs/recipes.md.
func TestTheRecipesDoWhatTheirTextSays(t *testing.T) {
	for name, play := range map[string]func(*testing.T){
		"Logins": func(t *testing.T) {
			k := cook(t, "Logins", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "" {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			k.want(30, "")(k.passes(30, "POST /login?right"))
			k.want(10, "over_limit")(k.passes(30, "POST /login"))
			k.want(0, "over_limit")(k.passes(30, "POST /login?right"))
			time.Sleep(time.Hour)
			k.want(10, "over_limit")(k.passes(30, "POST /login"))
		},
		"Strangers, customers, plans": func(t *testing.T) {
			k := cook(t, "Strangers, customers, plans", answer(200))
			k.want(20, "over_limit")(k.passes(2000, "/", withKey("made up")))
			k.want(0, "over_limit")(k.passes(2000, "/", withKey("also made up")))
			k.want(100, "over_limit")(k.passes(2000, "/", withKey("key of basil")))
			k.want(1000, "over_limit")(k.passes(2000, "/", withKey("key of paula")))
		},
		"Uploads": func(t *testing.T) {
			k := cook(t, "Uploads", answer(200))
			of := func(n int64) func(*http.Request) {
				return func(r *http.Request) { r.ContentLength = n }
			}
			k.want(0, "cost_too_large")(k.passes(1, "PUT /files/1", of(100<<20+1)))
			slow := cook(t, "Uploads", func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })
			k.want(4, "in_flight")(slow.atOnce(5, "PUT /files/1"))
		},
		"Work that is expensive": func(t *testing.T) {
			k := cook(t, "Work that is expensive", answer(200))
			k.want(2, "over_limit")(k.passes(9, "POST /export"))
			slow := cook(t, "Work that is expensive", func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })
			k.want(2, "in_flight")(slow.atOnce(3, "POST /export"))
		},
		"Webhooks": func(t *testing.T) {
			k := cook(t, "Webhooks", answer(200))
			began := time.Now()
			k.want(201, "over_limit")(k.atOnce(202, "POST /hooks/shop"))
			if took := time.Since(began); took != 4*time.Second {
				t.Errorf("the last starts after %v", took)
			}
		},
		"Cron jobs and batches": func(t *testing.T) {
			k := cook(t, "Cron jobs and batches", answer(200))
			began := time.Now()
			k.want(310, "over_limit")(k.atOnce(311, "/internal/batch/bills"))
			if took := time.Since(began); took != 30*time.Second {
				t.Errorf("the last starts after %v", took)
			}
		},
		"What costs money": func(t *testing.T) {
			status := http.StatusBadGateway
			k := cook(t, "What costs money", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			k.want(1500, "")(k.passes(1500, "POST /sms"))
			status = http.StatusOK
			k.want(1000, "over_limit")(k.passes(1500, "POST /sms"))
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, play) })
	}
}

// atOnce is passes for n requests that come together.
func (k kitchen) atOnce(n int, target string) (passed int, reason string) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range n {
		all.Go(func() {
			p, why := k.passes(1, target)
			mu.Lock()
			defer mu.Unlock()
			passed += p
			reason += why
		})
	}
	all.Wait()
	return passed, reason
}

// limitOf finds a rule, and what goes with it, in a row of the table of other limiters.
var limitOf = regexp.MustCompile("`((?:token_bucket|leaky_bucket|sliding_window|per|excess|max_wait): [^`]+)`")

// TestWhatOtherLimitersSayIsAccepted reads the rules of the table, of which nginx's burst=20 has to let 21 pass, at once or one by one.
func TestWhatOtherLimitersSayIsAccepted(t *testing.T) {
	page, err := os.ReadFile("docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || !limitOf.MatchString(cells[1]) {
			continue
		}
		rows++
		limit := "limits:\n  - name: taken-over\n"
		for _, m := range limitOf.FindAllStringSubmatch(cells[1], -1) {
			limit += "    " + m[1] + "\n"
		}
		synctest.Test(t, func(t *testing.T) {
			k := serve(t, limit, answer(200))
			if strings.Contains(cells[0], "nginx") {
				k.want(21, "over_limit")(k.atOnce(22, "/"))
			}
		})
	}
	if rows != 6 {
		t.Errorf("the table has %d rules", rows)
	}
}
