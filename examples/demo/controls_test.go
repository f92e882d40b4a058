package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/backend"
	"github.com/spillway-go/spillway/examples/demo/internal/load"
	"github.com/spillway-go/spillway/examples/internal/operate"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/pumpkin"
)

// press posts to a button as a page would, and returns the answer.
func press(c *controls, button, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/demo/"+button, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	c.handler().ServeHTTP(w, r)
	return w
}

// controlled makes controls whose load is played by play.
func controlled(t *testing.T, play runLoad) *controls {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	p, err := pumpkin.New(pumpkin.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	c := newControls("127.0.0.1:8080", p, log, play)
	t.Cleanup(c.close)
	return c
}

func TestButtonsAnswerOnlyToTheirOwnPage(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"own page":                  {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080") }, http.StatusNoContent},
		"own page, by fetch":        {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, http.StatusNoContent},
		"curl":                      {nil, http.StatusNoContent},
		"localhost":                 {func(r *http.Request) { r.Host = "localhost:8080" }, http.StatusNoContent},
		"another site":              {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"another site, old style":   {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"another port":              {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:9999") }, http.StatusForbidden},
		"a name that resolves":      {func(r *http.Request) { r.Host = "rebound.evil.example:8080" }, http.StatusForbidden},
		"a name that looks like":    {func(r *http.Request) { r.Host = "127.0.0.1.evil.example:8080" }, http.StatusForbidden},
		"an address of the network": {func(r *http.Request) { r.Host = "192.0.2.7:8080" }, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			controls := controlled(t, nil)
			w := press(controls, "pumpkin", "on=true", c.change)
			_, _, off := controls.pumpkin.FeatureOff(featureReports, "")
			if w.Code != c.status || off != (c.status == http.StatusNoContent) {
				t.Errorf("status %d and reports off: %t; want %d", w.Code, off, c.status)
			}
		})
	}
}

func TestThePumpkinButtonSwitchesReportsOffAndOn(t *testing.T) {
	c := controlled(t, nil)
	for _, step := range []struct {
		body   string
		status int
		off    bool
	}{
		{"on=true", http.StatusNoContent, true},
		{"on=true", http.StatusNoContent, true},
		{"on=perhaps", http.StatusBadRequest, true},
		{"of=false", http.StatusBadRequest, true},
		{"on=" + strings.Repeat("x", 2000), http.StatusBadRequest, true},
		{"on=false", http.StatusNoContent, false},
		{"on=false", http.StatusNoContent, false},
		{"", http.StatusNoContent, true},
		{"", http.StatusNoContent, false},
	} {
		w := press(c, "pumpkin", step.body, nil)
		words, _, off := c.pumpkin.FeatureOff(featureReports, "")
		if w.Code != step.status || off != step.off || off && !strings.Contains(words, "Reports") {
			t.Errorf("%.20q: status %d, off %t, words %q; want %d and %t", step.body, w.Code, off, words, step.status, step.off)
		}
		if _, _, orders := c.pumpkin.FeatureOff(featureOrders, ""); orders {
			t.Error("orders are off, too")
		}
	}
}

func TestOneLoadAtATimeAndItsEndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controlled(t, func(ctx context.Context, p load.Plan) (load.Report, error) {
			time.Sleep(15 * time.Second)
			return load.Report{Sent: p.Count, Statuses: map[int]int{200: 20, 429: 5}, Shots: []load.Shot{{Status: 429, RetryAfter: 1}}}, nil
		})
		if w := press(c, "burst", "", nil); w.Code != http.StatusAccepted {
			t.Fatalf("the first press: %d", w.Code)
		}
		if running, text := c.state(); running != "burst" || text == "" {
			t.Errorf("running %q, text %q", running, text)
		}
		if w := press(c, "overload", "", nil); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "wait until it is done") {
			t.Errorf("a second one meanwhile: %d %s", w.Code, w.Body)
		}
		c.wg.Wait()
		running, text := c.state()
		for _, want := range []string{"25 sent", "20 served", "5 refused with 429", "come back in 1 s"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q does not say %q", text, want)
			}
		}
		if running != "" || press(c, "orders", "", nil).Code != http.StatusAccepted {
			t.Error("the next press is refused although nothing is running")
		}
		c.wg.Wait()
	})
}

func TestLoadThatFailsIsTold(t *testing.T) {
	c := controlled(t, func(context.Context, load.Plan) (load.Report, error) {
		return load.Report{}, errors.New("no child today")
	})
	press(c, "burst", "", nil)
	c.wg.Wait()
	if _, text := c.state(); !strings.Contains(text, "no child today") {
		t.Errorf("the text is %q", text)
	}
}

func TestStoppingEndsTheLoadAndStartsNoOther(t *testing.T) {
	c := controlled(t, func(ctx context.Context, _ load.Plan) (load.Report, error) {
		<-ctx.Done()
		return load.Report{}, ctx.Err()
	})
	press(c, "overload", "", nil)
	c.close()
	if w := press(c, "overload", "", nil); w.Code != http.StatusConflict {
		t.Errorf("a press after the end: %d, want 409", w.Code)
	}
}

// Each button must show what its sentence on the page says, and nothing else: no client of the overload may be over its
// quota, or 429s would hide the 503s.
func TestThePlansShowWhatTheButtonsSay(t *testing.T) {
	c := controlled(t, nil)
	bucket := program().Shed.Limits[0].Rule.(limits.TokenBucket)
	for _, button := range buttons {
		p, ok := c.plan(button)
		if ok == (button == "pumpkin") {
			t.Errorf("%s has a plan: %t", button, ok)
		}
		if ok && p.Addr != c.addr {
			t.Errorf("%s goes to %s, not to the demo", button, p.Addr)
		}
	}
	burst, _ := c.plan("burst")
	if int64(burst.Count) != bucket.Capacity+5 || burst.Keys != 1 || burst.Rate != 0 {
		t.Errorf("the burst is %+v, want 5 more at once than the bucket holds, from one client", burst)
	}
	orders, _ := c.plan("orders")
	if int64(orders.Count) > bucket.Capacity || orders.Method != http.MethodPost {
		t.Errorf("the orders are %+v, want fewer than the bucket holds: they shall be delayed, not refused", orders)
	}
	overload, _ := c.plan("overload")
	if overload.Rate != 5*backend.Capacity || int64(overload.Rate) > int64(overload.Keys)*bucket.Refill.Amount {
		t.Errorf("the overload is %+v, want five times the capacity and no client above %v", overload, bucket.Refill)
	}
	if w := press(c, "nonsense", "", nil); w.Code != http.StatusNotFound {
		t.Errorf("an unknown button: %d, want 404", w.Code)
	}
}

func TestTheBurstButtonMakesRealLoadInAChild(t *testing.T) {
	d := started(t, slowRefill(t)...)
	answer, body := answered(t, request(t, http.MethodPost, d.url("/demo/burst"), ""))
	if answer.StatusCode != http.StatusAccepted {
		t.Fatalf("status %d: %s", answer.StatusCode, body)
	}
	d.controls.wg.Wait()
	_, text := d.controls.state()
	if !strings.Contains(text, "25 sent, 20 served") || !strings.Contains(text, "5 refused with 429") {
		t.Errorf("the outcome is %q", text)
	}
}

func TestWithoutALoopbackListenerThereAreNoButtons(t *testing.T) {
	d := started(t, "-listen", "0.0.0.0:0")
	base := "http://" + operate.Reachable(d.public.Addr())
	for _, button := range buttons {
		answer, _ := answered(t, request(t, http.MethodPost, base+"/demo/"+button, url.Values{"on": {"true"}}.Encode()))
		if answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s answers %d", button, answer.StatusCode)
		}
	}
	if _, body := answered(t, request(t, http.MethodGet, base+"/demo/stats", "")); !strings.Contains(body, `"controls":false`) {
		t.Errorf("the page is not told that there are no buttons: %s", body)
	}
}

func TestNoTokenIsInThePage(t *testing.T) {
	d := started(t)
	for _, path := range []string{"/", "/assets/live.js", "/assets/demo.js", "/assets/banner.js", "/demo/stats", "/pumpkin.json", "/metrics"} {
		if _, body := answered(t, request(t, http.MethodGet, d.url(path), "")); strings.Contains(body, testToken) {
			t.Errorf("%s holds the admin token", path)
		}
	}
	err := fs.WalkDir(os.DirFS("internal/web/assets"), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile("internal/web/assets/" + name)
		if strings.Contains(strings.ToLower(string(content)), "authorization") {
			t.Errorf("%s sends credentials", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
