package pumpkin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A client that goes by the name the server knows it by leaves alone exactly what the server would refuse.
func TestClientWithAnIDAgreesWithTheServer(t *testing.T) {
	p := open(t, Config{})
	put(t, p, "a", off("a", 0.3, "search", "pay"))
	put(t, p, "b", off("b", 0.1, Everything))
	put(t, p, "c", off("c", 0.01, "orders")) // a name of its own exempts nothing
	v := newClientView(p.Document(), nil, 0, 0)
	blocked := map[string]int{}
	for i := range 2000 {
		c := &Client{config: ClientConfig{ID: fmt.Sprintf("customer-%d", i)}}
		c.view.Store(v)
		for _, feature := range []string{"search", "pay", "reports", "orders"} {
			_, _, off := p.FeatureOff(feature, c.config.ID)
			if c.Blocked(feature) != off {
				t.Fatalf("%s: the client says %v of %s, the server %v", c.config.ID, !off, feature, off)
			}
			if off {
				blocked[feature]++
			}
		}
	}
	for feature, want := range map[string]int{"search": 600, "pay": 600, "reports": 200, "orders": 200} {
		if n := blocked[feature]; n < want-100 || n > want+100 {
			t.Errorf("%s is off for %d of 2000, want about %d", feature, n, want)
		}
	}
}

func TestNewsOnAnyResponseBringThePollForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		w := newWire(p.Public().ServeHTTP)
		c := follow(t, w, 0.1, ClientConfig{})
		pass(500 * time.Millisecond)
		for _, nothing := range []string{"", "x", p.Rev(), testEpoch + ".x", testEpoch + ".-1", "zzz.9", strings.Repeat("Z", 40) + ".1"} {
			c.Seen(nothing)
		}
		put(t, p, "search", off("Search is off.", 1, "search"))
		for range 100 {
			c.Seen(p.Rev())
		}
		pass(6 * time.Second) // 0.1 of the 60 s that are the pace while all is well
		if !c.Blocked("search") {
			t.Error("does not know yet")
		}
		c.Seen(p.Rev())
		pass(12 * time.Second)
		if got, want := w.asked(), []time.Duration{500 * time.Millisecond, 6500 * time.Millisecond}; !slices.Equal(got, want) {
			t.Errorf("polls at %v, want %v", got, want)
		}
	})
}

func TestCloseEndsAPollUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c := follow(t, w, 0, ClientConfig{})
		synctest.Wait()
		if len(w.asked()) != 1 {
			t.Fatal("no poll under way")
		}
		before := time.Now()
		c.Close()
		c.Close()
		if waited := time.Since(before); waited != 0 || c.Status().Failed != 0 {
			t.Errorf("Close took %v, %+v", waited, c.Status())
		}
		c.Seen(testEpoch + ".7")
		pass(time.Hour)
		if n := len(w.asked()); n != 1 {
			t.Errorf("%d polls after Close", n-1)
		}
	})
}

func TestClientRefusesAnURLItCannotAsk(t *testing.T) {
	for _, u := range []string{"", "/pumpkin.json", "shop.example", "ftp://shop.example/", "http://", "http://%zz"} {
		if c, err := NewClient(ClientConfig{URL: u}); err == nil {
			c.Close()
			t.Errorf("%q: no error", u)
		} else if !strings.HasPrefix(err.Error(), "pumpkin: client: URL") {
			t.Errorf("%q: %v", u, err)
		}
	}
}

func TestBlockedAllocatesNothing(t *testing.T) {
	p := open(t, Config{})
	e := off("x", 0.5, "search")
	e.RecoverSpread = 100
	put(t, p, "s", e)
	old := newClientView(p.Document(), nil, 0, 0)
	put(t, p, "s", off("x", 0.25, "search", "pay"))
	for _, id := range []string{"", "customer-7"} {
		c := &Client{config: ClientConfig{ID: id}, start: time.Now()}
		c.view.Store(newClientView(p.Document(), old, 0, 0.5))
		for _, feature := range []string{"search", "other"} {
			if n := testing.AllocsPerRun(100, func() { c.Blocked(feature) }); n != 0 {
				t.Errorf("Blocked(%q) of %q: %v allocations", feature, id, n)
			}
		}
	}
}

// Documents that change faster than clients come back must not pile up.
func TestWhatIsHeldBackIsBounded(t *testing.T) {
	var v *clientView
	for i := range 10 * maxClientHolds {
		d := Document{Epoch: "A", Rev: uint64(i), Items: []Notice{{ID: fmt.Sprint(i), RecoverSpread: 1 << 20, Features: map[string]Feature{"x": {Off: 1}}}}}
		v = newClientView(d, v, time.Second, 0.5)
	}
	if len(v.holds) > maxClientHolds {
		t.Errorf("%d holds", len(v.holds))
	}
}

func FuzzParseDocument(f *testing.F) {
	p := open(f, Config{})
	put(f, p, "s", off("x", 0.5, "search", "*"))
	f.Add(poll(p, "GET").Body.Bytes())
	f.Add([]byte(`{"schema":1,"epoch":"A","rev":1,"poll_after":1,"items":[{},{"features":null},{"features":{"":{}}}]}`))
	f.Add([]byte(`{"schema":1,"epoch":"A","poll_after":9223372036854775807,"items":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := parseDocument(body)
		if err != nil {
			return
		}
		c := &Client{place: 0.5, start: time.Now()}
		c.view.Store(newClientView(d, newClientView(d, nil, 0, 0), 0, 0.5))
		for _, feature := range []string{"", "search", "*"} {
			c.Blocked(feature)
		}
		var s Schedule
		s.Answered(0, time.Duration(d.PollAfter)*time.Second, 0.5)
		if s.Due() < shortestPoll || s.Due() > longestPoll {
			t.Errorf("poll_after %d: the next poll after %v", d.PollAfter, s.Due())
		}
	})
}

// The client over a real connection: it is the server's connections that a leak would show.
func TestClientOverTheWire(t *testing.T) {
	p := open(t, Config{PollAfter: 5 * time.Second, PollIdle: 5 * time.Second})
	put(t, p, "search", off("Search is off.", 1, "search"))
	server := httptest.NewServer(p.Public())
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	known := make(chan Document, 1)
	c, err := NewClient(ClientConfig{URL: server.URL, Transport: transport, OnChange: func(d Document) { known <- d }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case d := <-known:
		if !c.Blocked("search") || d.Rev != 1 {
			t.Errorf("%+v", d)
		}
	case <-ctx.Done():
		t.Fatal("no document")
	}
}
