package pumpkin

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// wire is a transport that leads to a handler in memory and notes when it was asked, and with which entity tag.
type wire struct {
	mu      sync.Mutex
	handler http.HandlerFunc
	start   time.Time
	polls   []time.Duration
	tags    []string
}

func newWire(h http.HandlerFunc) *wire { return &wire{handler: h, start: time.Now()} }

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.polls = append(w.polls, time.Since(w.start))
	w.tags = append(w.tags, r.Header.Get("If-None-Match"))
	h := w.handler
	w.mu.Unlock()
	rec := httptest.NewRecorder()
	h(rec, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if rec.Code == hangUp {
		return nil, errors.New("connection refused")
	}
	return rec.Result(), nil
}

// hangUp is what a handler of a wire answers to give no answer.
const hangUp = 999

func (w *wire) answers(h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = h
}

func (w *wire) asked() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.polls)
}

// text answers with a status and a body.
func text(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// follow starts a client whose every draw is u, to be closed when the test ends.
func follow(t testing.TB, w *wire, u float64, c ClientConfig) *Client {
	t.Helper()
	c.URL, c.Transport = "http://pumpkin.test/pumpkin.json", w
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	client, err := newClient(c, func() float64 { return u })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// pass lets virtual time pass, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestClientLearnsWithinOnePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{PollIdle: 15 * time.Second})
		w := newWire(p.Public().ServeHTTP)
		var changes atomic.Int32
		c := follow(t, w, 0.5, ClientConfig{OnChange: func(Document) { changes.Add(1) }})
		if _, ok := c.Document(); ok || c.Blocked("search") {
			t.Fatal("knows something before the first poll")
		}
		pass(2500 * time.Millisecond)
		if d, ok := c.Document(); !ok || d.Active || changes.Load() != 1 {
			t.Fatalf("after the first poll: %+v, %d changes", d, changes.Load())
		}
		put(t, p, "search", off("Search is off.", 1, "search"))
		pass(15*time.Second - 1)
		if c.Blocked("search") {
			t.Fatal("knows before it asked")
		}
		pass(1)
		if !c.Blocked("search") || c.Blocked("pay") || c.Blocked("") || changes.Load() != 2 {
			t.Fatalf("after the poll: search %v, pay %v, %d changes", c.Blocked("search"), c.Blocked("pay"), changes.Load())
		}
		pass(15 * time.Second)
		if _, err := p.Clear("test", "search"); err != nil {
			t.Fatal(err)
		}
		pass(15 * time.Second)
		if c.Blocked("search") || changes.Load() != 3 {
			t.Errorf("after the end: search %v, %d changes", c.Blocked("search"), changes.Load())
		}
		want := []time.Duration{2500 * time.Millisecond}
		for range 3 {
			want = append(want, want[len(want)-1]+15*time.Second)
		}
		if got := w.asked(); !slices.Equal(got, want) {
			t.Errorf("polls at %v, want %v", got, want)
		}
		if s := c.Status(); s.Answered != 3 || s.Unchanged != 1 || s.Failed != 0 || w.tags[0] != "" || w.tags[2] == "" {
			t.Errorf("%+v with tags %q", s, w.tags)
		}
	})
}

func TestClientKeepsWhatItKnowsWhilePollsFail(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"500":               text(500, "oops"),
		"204":               text(204, ""),
		"404 with JSON":     text(404, `{"schema":1,"epoch":"Z","rev":9,"active":false,"poll_after":15,"default_lang":"en","items":[]}`),
		"HTML":              text(200, "<!doctype html>Sign in"),
		"nothing":           text(200, ""),
		"cut off":           text(200, `{"schema":1,"epoch":"Z","rev":9`),
		"another schema":    text(200, `{"schema":2,"epoch":"Z","rev":9,"poll_after":15,"items":[]}`),
		"no epoch":          text(200, `{"schema":1,"rev":9,"poll_after":15,"items":[]}`),
		"no pace":           text(200, `{"schema":1,"epoch":"Z","rev":9,"items":[]}`),
		"negative rev":      text(200, `{"schema":1,"epoch":"Z","rev":-1,"poll_after":15,"items":[]}`),
		"impossible share":  text(200, `{"schema":1,"epoch":"Z","rev":9,"poll_after":15,"items":[{"features":{"x":{"off":7}}}]}`),
		"too long by one":   text(200, `{"schema":1,"epoch":"Z","rev":9,"poll_after":15,"items":[]}`+strings.Repeat(" ", maxPolled-58)),
		"without end":       text(200, strings.Repeat(" ", maxPolled)+`{"schema":1,"epoch":"Z","rev":9,"poll_after":15,"items":[]}`),
		"no connection":     text(hangUp, ""),
		"no answer in time": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := open(t, Config{})
				put(t, p, "search", off("Search is off.", 1, "search"))
				w := newWire(p.Public().ServeHTTP)
				c := follow(t, w, 0.5, ClientConfig{})
				pass(2500 * time.Millisecond)
				before, _ := c.Document()
				w.answers(answer)
				pass(20 * time.Second)
				s := c.Status()
				if s.Failed != 1 || s.FailuresInARow != 1 || s.Error == "" || s.Age != 20 {
					t.Fatalf("%+v", s)
				}
				if after, _ := c.Document(); !c.Blocked("search") || after.Rev != before.Rev || after.Epoch != before.Epoch {
					t.Fatalf("forgot: %+v", after)
				}
				w.answers(p.Public().ServeHTTP)
				pass(30 * time.Second)
				if s := c.Status(); s.FailuresInARow != 0 || s.Error != "" || s.Unchanged == 0 {
					t.Errorf("afterwards: %+v", s)
				}
			})
		})
	}
}

func TestClientBacksOffAndHonoursRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(text(500, ""))
		c := follow(t, w, 0.5, ClientConfig{})
		pass(2500 * time.Millisecond)
		pass(15 * time.Second)
		pass(30 * time.Second)
		w.answers(text(503, "", "Retry-After", "100"))
		pass(60 * time.Second)
		pass(220 * time.Second)
		w.answers(text(429, "", "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)))
		pass(250 * time.Second) // an hour is not believed: ten minutes and the backoff
		pass(750 * time.Second)
		want := []time.Duration{2500 * time.Millisecond}
		for _, wait := range []int{15, 30, 60, 220, 250, 750} {
			want = append(want, want[len(want)-1]+time.Duration(wait)*time.Second)
		}
		if got := w.asked(); !slices.Equal(got, want) {
			t.Errorf("polls at %v, want %v", got, want)
		}
		if s := c.Status(); s.Age != -1 || s.Failed != 7 {
			t.Errorf("%+v", s)
		}
	})
}

// doc is a document with the search off for a share.
func doc(epoch string, rev int, share float64) http.HandlerFunc {
	return text(200, fmt.Sprintf(`{"schema":1,"epoch":%q,"rev":%d,"active":true,"poll_after":15,"default_lang":"en","later":"field","items":[`+
		`{"id":"s","severity":"minor","message":{"en":"x"},"dismissible":true,"notice_rev":1,"recover_spread":0,"features":{"search":{"off":%v}}}]}`,
		epoch, rev, share))
}

func TestClientNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(doc("B", 5, 1))
		c := follow(t, w, 0.5, ClientConfig{})
		pass(2500 * time.Millisecond)
		for _, step := range []struct {
			name    string
			answer  http.HandlerFunc
			blocked bool
			epoch   string
			rev     uint64
		}{
			{"a lagging instance", doc("B", 4, 0), true, "B", 5},
			{"an older epoch", doc("A", 9, 0), true, "B", 5},
			{"the same rev with other words", doc("B", 5, 0), false, "B", 5},
			{"a higher rev", doc("B", 6, 1), true, "B", 6},
			{"a newer epoch, whatever its rev", doc("C", 1, 0), false, "C", 1},
			{"the epoch before", doc("B", 7, 1), false, "C", 1},
		} {
			w.answers(step.answer)
			pass(15 * time.Second)
			if d, _ := c.Document(); c.Blocked("search") != step.blocked || d.Epoch != step.epoch || d.Rev != step.rev {
				t.Errorf("%s: blocked %v under %s.%d, want %v under %s.%d", step.name, c.Blocked("search"), d.Epoch, d.Rev, step.blocked, step.epoch, step.rev)
			}
		}
		if s := c.Status(); s.Failed != 0 {
			t.Errorf("old documents are no failures: %+v", s)
		}
	})
}

func TestClientComesBackInItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{PollIdle: 15 * time.Second})
		e := off("Everything is off.", 1, Everything)
		e.RecoverSpread = 40
		put(t, p, "all", e)
		put(t, p, "pay", off("Paying is off.", 1, "pay"))
		var changes atomic.Int32
		c := follow(t, newWire(p.Public().ServeHTTP), 0.25, ClientConfig{OnChange: func(Document) { changes.Add(1) }})
		pass(1250 * time.Millisecond)
		if !c.Blocked("search") || !c.Blocked("pay") {
			t.Fatal("not everything is off")
		}
		p.Clear("test", "all")
		pass(13500 * time.Millisecond) // the poll: a quarter of the way from 0.8 to 1.2 of 15 s
		if d, _ := c.Document(); len(d.Items) != 1 || !c.Blocked("search") || changes.Load() != 2 {
			t.Fatalf("%d items, search %v, %d changes", len(d.Items), c.Blocked("search"), changes.Load())
		}
		pass(10*time.Second - 1)
		if !c.Blocked("search") {
			t.Fatal("came back before its turn: a quarter of 40 s")
		}
		pass(1)
		if c.Blocked("search") || !c.Blocked("pay") || changes.Load() != 3 {
			t.Errorf("after its turn: search %v, pay %v, %d changes", c.Blocked("search"), c.Blocked("pay"), changes.Load())
		}
	})
}

// Who is held back stays so, whatever the documents say meanwhile, and who is let in again is only the part that comes back.
func TestClientsAreHeldBackAcrossDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{PollIdle: 15 * time.Second})
		e := off("Search is off.", 1, "search")
		e.RecoverSpread = 100
		put(t, p, "s", e)
		in, out := follow(t, newWire(p.Public().ServeHTTP), 0.4, ClientConfig{}), follow(t, newWire(p.Public().ServeHTTP), 0.9, ClientConfig{})
		pass(5 * time.Second)
		e.Features = map[string]Feature{"search": {Off: 0.5}}
		put(t, p, "s", e)
		pass(18 * time.Second) // both know, and the upper half may come back one after the other
		if !in.Blocked("search") || !out.Blocked("search") {
			t.Errorf("half is on again: 0.4 is off %t, 0.9 is off %t", in.Blocked("search"), out.Blocked("search"))
		}
		put(t, p, "other", off("Paying is off.", 1, "pay"))
		pass(20 * time.Second)
		if !out.Blocked("pay") || !out.Blocked("search") {
			t.Errorf("after another document: pay %t, search %t", out.Blocked("pay"), out.Blocked("search"))
		}
		pass(90 * time.Second)
		if !in.Blocked("search") || out.Blocked("search") {
			t.Errorf("after its turn: 0.4 is off %t, 0.9 is off %t", in.Blocked("search"), out.Blocked("search"))
		}
	})
}

func TestClientsOfWhatCannotBeAskedAreRefused(t *testing.T) {
	for address, want := range map[string]bool{
		"https://shop.test/pumpkin.json": true, "http://shop.test/pumpkin.json": true,
		"ftp://shop.test/": false, "/pumpkin.json": false, "https:///pumpkin.json": false, "": false, "http://%zz": false,
	} {
		c, err := NewClient(ClientConfig{URL: address, Transport: newWire(text(hangUp, ""))})
		if (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// Close waits for what it has called.
func TestCloseWaitsForOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		p := open(t, Config{})
		c := follow(t, newWire(p.Public().ServeHTTP), 0, ClientConfig{OnChange: func(Document) { time.Sleep(time.Minute); ended = true }})
		pass(time.Second)
		if c.Close(); !ended {
			t.Error("OnChange goes on after Close")
		}
	})
}

// Held back are those only who were away: half of a share does not come back if it never left.
func TestWhoWasNotAwayIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{PollIdle: 15 * time.Second})
		e := off("Search is off for some.", 0.5, "search")
		e.RecoverSpread = 100
		put(t, p, "s", e)
		inside := follow(t, newWire(p.Public().ServeHTTP), 0.4, ClientConfig{})
		outside := follow(t, newWire(p.Public().ServeHTTP), 0.6, ClientConfig{})
		pass(5 * time.Second)
		if !inside.Blocked("search") || outside.Blocked("search") {
			t.Fatalf("share of a half: 0.4 is off %v, 0.6 is off %v", inside.Blocked("search"), outside.Blocked("search"))
		}
		p.Clear("test", "s")
		pass(18 * time.Second)
		if !inside.Blocked("search") || outside.Blocked("search") {
			t.Errorf("after the end: 0.4 is held back %v, 0.6 is %v", inside.Blocked("search"), outside.Blocked("search"))
		}
	})
}
