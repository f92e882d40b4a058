package load

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain lets the test binary be the child that Run starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == ChildArg {
		os.Exit(Child(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestRunPlaysThePlanInAChildProcess(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%5 == 0 {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		if r.Method != "POST" || r.URL.Path != "/api/items" || !strings.HasPrefix(r.Header.Get("X-API-Key"), "t-") {
			t.Errorf("the server sees %s %s from %q", r.Method, r.URL, r.Header.Get("X-API-Key"))
		}
	}))
	defer server.Close()
	p := sound()
	p.Addr, p.Method, p.Count, p.Rate, p.Detail = server.Listener.Addr().String(), "POST", 20, 0, true
	r, err := Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if requests.Load() != 20 || r.Sent != 20 || r.Statuses[200] != 16 || r.Statuses[429] != 4 || len(r.Shots) != 20 {
		t.Errorf("the server saw %d; report %+v; want 20, of which 4 are refused", requests.Load(), r)
	}
	for _, s := range r.Shots {
		if want := map[int]int{200: -1, 429: 3}[s.Status]; s.RetryAfter != want {
			t.Errorf("status %d with Retry-After %d, want %d", s.Status, s.RetryAfter, want)
		}
	}
}

func TestRunEndsWithItsContextAndLeavesNoChild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan struct{}, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		first <- struct{}{}
	}))
	defer server.Close()
	go func() {
		<-first
		cancel()
	}()
	p := sound()
	p.Addr, p.Count, p.Rate = server.Listener.Addr().String(), 500, 10
	if _, err := Run(ctx, p); err != context.Canceled {
		t.Errorf("Run = %v, want context.Canceled", err)
	}
}

func TestABadPlanStartsNoChild(t *testing.T) {
	p := sound()
	p.Addr = "192.0.2.1:80"
	if _, err := Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("Run = %v, want the loopback error", err)
	}
}

func TestTheChildRefusesWhatItsParentShouldHave(t *testing.T) {
	for name, c := range map[string]struct{ in, says string }{
		"nothing":         {"", "no plan"},
		"no line end":     {"{}", "no plan"},
		"not JSON":        {"hello\n", "not valid JSON"},
		"another machine": {`{"Addr":"192.0.2.1:80","Method":"GET","Path":"/","Count":1,"Keys":1,"KeyPrefix":"t"}` + "\n", "loopback"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := Child(strings.NewReader(c.in), &out, &errs); code != 2 || !strings.Contains(errs.String(), c.says) || out.Len() > 0 {
				t.Errorf("exit code %d, out %q, err %q; want 2 and %q", code, &out, &errs, c.says)
			}
		})
	}
}

func TestTheChildStopsWhenItsParentIsGone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	in, parent := io.Pipe()
	go func() {
		io.WriteString(parent, `{"Addr":"`+server.Listener.Addr().String()+`","Method":"GET","Path":"/","Count":600,"Rate":10,"Keys":1,"KeyPrefix":"t"}`+"\n")
		parent.Close()
	}()
	var out, errs bytes.Buffer
	begin := time.Now()
	if code := Child(in, &out, &errs); code != 0 {
		t.Errorf("exit code %d: %s", code, &errs)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("the child played its minute to the end: %v", took)
	}
}
