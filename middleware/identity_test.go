package middleware_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/middleware/echomw"
	"github.com/spillway-go/spillway/shed"
)

// ip-spoof: whatever a direct peer writes into its headers, it stays one client.
func TestForgedHeadersBuyNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, limited(bucket("per-client", 1)))
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		allowed(t, send(t, srv, "GET", "/"))
		for _, field := range []string{"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Azure-ClientIP"} {
			refused(t, send(t, srv, "GET", "/", field, "6.6.6.6"), 429, shed.OverLimit)
		}
		refused(t, send(t, srv, "GET", "/", "Forwarded", "for=6.6.6.6"), 429, shed.OverLimit)
		refused(t, send(t, srv, "GET", "/", "X-API-Key", strings.Repeat("k", 10_000)), 429, shed.OverLimit)
		refused(t, send(t, srv, "GET", "/", "X-API-Key", "a", "X-API-Key", "b"), 429, shed.OverLimit)
	})
}

// A key is a label that anybody can make up. Rules per client believe it; rules per ip hold whatever the key.
func TestRotatingKeysDoesNotEvadeRulesPerAddress(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		perIP := bucket("per-ip", 3)
		perIP.Per = shed.PerIP
		s := open(t, 10, limited(bucket("per-client", 1), perIP))
		h := a.wrap(t, middleware.Config{Shedder: s}, ok)
		for i := range 10 {
			w := call(h, "GET", "/", fmt.Sprintf("192.0.2.1:%d", 1000+i), "X-API-Key", fmt.Sprint("made-up-", i))
			if i < 3 {
				allowed(t, w.Result())
			} else if p := refused(t, w.Result(), 429, shed.OverLimit); p.Rule != "per-ip" {
				t.Errorf("refused by %q", p.Rule)
			}
		}
		allowed(t, call(h, "GET", "/", "192.0.2.2:1", "X-API-Key", "another").Result())
	})
}

// ipv6-rotation
func TestOneHolderOfAPrefixHasOneBalance(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, limited(bucket("per-client", 5)))
		h := a.wrap(t, middleware.Config{Shedder: s}, ok)
		passed := 0
		for i := range 1000 {
			if call(h, "GET", "/", fmt.Sprintf("[2001:db8::%x]:1", i+1)).Code == 200 {
				passed++
			}
		}
		if passed != 5 {
			t.Errorf("%d of 1000 addresses of one /64 passed, want 5", passed)
		}
		allowed(t, call(h, "GET", "/", "[2001:db8:0:1::1]:1").Result())
	})
}

// ip-empty
func TestNobodyIsNeverASharedNamelessClient(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		for _, peer := range []string{"@", "", "/run/app.sock"} {
			handler := func(unknown string, l ...shed.Limit) http.Handler {
				s := open(t, 10, func(c *shed.Config) { c.Limits, c.Clients.Unknown = l, unknown })
				return a.wrap(t, middleware.Config{Shedder: s}, ok)
			}
			h := handler("refuse", bucket("per-client", 5))
			if p := refused(t, call(h, "GET", "/", peer).Result(), 403, shed.NoIdentity); !strings.Contains(p.Detail, "X-API-Key") {
				t.Errorf("detail: %q", p.Detail)
			}
			allowed(t, call(h, "GET", "/", peer, "X-API-Key", "k").Result())

			h = handler("shared", bucket("per-client", 1))
			allowed(t, call(h, "GET", "/", peer).Result())
			refused(t, call(h, "GET", "/", peer).Result(), 429, shed.OverLimit)
			allowed(t, call(h, "GET", "/", peer, "X-API-Key", "unknown").Result()) // a key cannot be that name

			site := bucket("site", 2)
			site.Per = shed.Global
			h = handler("exempt", bucket("per-client", 0), site)
			allowed(t, call(h, "GET", "/", peer).Result())
			allowed(t, call(h, "GET", "/", peer).Result())
			refused(t, call(h, "GET", "/", peer).Result(), 429, shed.OverLimit) // the site's rule holds for everybody

			// Where no rule asks who it is, nobody has to say.
			allowed(t, call(handler("refuse"), "GET", "/", peer).Result())
		}
	})
}

func TestClientsBehindTheConfiguredProxyAreToldApart(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 10, func(c *shed.Config) {
			c.Limits = []shed.Limit{bucket("per-client", 1)}
			c.Clients.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		allowed(t, send(t, srv, "GET", "/", "X-Forwarded-For", "9.9.9.9"))
		allowed(t, send(t, srv, "GET", "/", "X-Forwarded-For", "8.8.8.8:1234"))
		refused(t, send(t, srv, "GET", "/", "X-Forwarded-For", "6.6.6.6, 9.9.9.9"), 429, shed.OverLimit)
		refused(t, send(t, srv, "GET", "/", "X-Forwarded-For", "7.7.7.7, garbage"), 403, shed.NoIdentity)
		refused(t, send(t, srv, "GET", "/", "X-Forwarded-For", strings.Repeat("127.0.0.1,", 1000)+"127.0.0.1"), 403, shed.NoIdentity)
	})
}

func TestTheApplicationsOwnWordComesFirst(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, limited(bucket("per-client", 1)))
		h := a.wrap(t, middleware.Config{Shedder: s, Principal: func(r *http.Request) string { return r.URL.Query().Get("user") }}, ok)
		allowed(t, call(h, "GET", "/?user=alice", "192.0.2.1:1").Result())
		allowed(t, call(h, "GET", "/?user=bob", "192.0.2.1:1").Result())
		refused(t, call(h, "GET", "/?user=alice", "192.0.2.9:1", "X-API-Key", "k").Result(), 429, shed.OverLimit)
		allowed(t, call(h, "GET", "/", "192.0.2.1:1").Result()) // nobody in particular: by address
	})
}

// health-shed
func TestProbesPassWhateverTheLoadAndAreNotCounted(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 1, func(c *shed.Config) {
			c.Limits = []shed.Limit{bucket("per-client", 1)}
			c.Routes = []shed.Route{{Name: "probes", Match: "GET /healthz", Exempt: true}}
		})
		mux := http.NewServeMux()
		entered, leave := make(chan struct{}), make(chan struct{})
		mux.Handle("GET /healthz", ok)
		mux.HandleFunc("GET /work", func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-leave
			ok(w, r)
		})
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, mux))
		done := make(chan struct{})
		go func() {
			defer close(done)
			if res, err := srv.Client().Get(srv.URL + "/work"); err == nil {
				res.Body.Close()
			}
		}()
		<-entered
		for range 50 {
			res := send(t, srv, "GET", "/healthz")
			allowed(t, res)
			if got := res.Header.Get("RateLimit"); got != "" {
				t.Errorf("a probe has a quota: %s", got)
			}
		}
		refused(t, send(t, srv, "GET", "/other"), 503, shed.Overloaded)
		close(leave)
		<-done
		if st := s.Status(); st.Exempt != 50 || st.Admitted != 1 {
			t.Errorf("exempt %d, admitted %d; want 50 and 1", st.Exempt, st.Admitted)
		}
	})
}

func TestExemptRoutesAreNoOpenDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still: the guard does not refill
		s := open(t, 1, func(c *shed.Config) {
			c.Routes = []shed.Route{{Name: "probes", Match: "GET /healthz", Exempt: true}}
			c.Clients.ExemptFrom = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
			c.Clients.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
			c.Limits = []shed.Limit{bucket("per-client", 1)}
		})
		h := wrapHTTP(t, middleware.Config{Shedder: s}, ok)
		passed := 0
		for range 6000 {
			if call(h, "GET", "/healthz", "198.51.100.1:1").Code == 200 {
				passed++
			}
		}
		if passed != 5000 {
			t.Errorf("%d probes passed in one instant, want 5000", passed)
		}
		w := call(h, "GET", "/healthz", "198.51.100.1:1")
		refused(t, w.Result(), 503, shed.Overloaded)
		allowed(t, call(h, "GET", "/healthz", "10.1.2.3:1").Result())
		// It is the peer that counts, not whom it speaks for.
		refused(t, call(h, "GET", "/healthz", "192.0.2.1:1", "X-Forwarded-For", "10.1.2.3").Result(), 503, shed.Overloaded)
		// And what is not exempt is so for nobody.
		allowed(t, call(h, "GET", "/", "10.1.2.3:1").Result())
		refused(t, call(h, "GET", "/", "10.1.2.3:1").Result(), 429, shed.OverLimit)
	})
}

// instance-multiplied: one shedder is one budget, however often it is mounted.
func TestOneShedderOnTwoGroupsIsOneBudget(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		s := open(t, 10, limited(bucket("per-client", 2)))
		one, two := a.wrap(t, middleware.Config{Shedder: s}, ok), a.wrap(t, middleware.Config{Shedder: s}, ok)
		allowed(t, call(one, "GET", "/", "192.0.2.1:1", "X-API-Key", "k").Result())
		allowed(t, call(two, "GET", "/", "192.0.2.1:1", "X-API-Key", "k").Result())
		refused(t, call(one, "GET", "/", "192.0.2.1:1", "X-API-Key", "k").Result(), 429, shed.OverLimit)
	})
}

func TestRoutesAreChargedByTheirOwnRules(t *testing.T) {
	forEachAdapter(t, func(t *testing.T, a adapter) {
		writes := bucket("writes", 2)
		writes.Routes = []string{"write", "import"}
		s := open(t, 10, func(c *shed.Config) {
			c.Limits = []shed.Limit{writes}
			c.Routes = []shed.Route{{Name: "write", Match: "POST /orders/{id}"}, {Name: "import"}}
		})
		h := a.wrap(t, middleware.Config{Shedder: s, Route: func(r *http.Request) string { return r.Header.Get("Internal-Route") }}, ok)
		peer := "192.0.2.1:1"
		if got := call(h, "GET", "/orders/7", peer).Header().Get("RateLimit"); got != "" {
			t.Errorf("a read has the quota of writes: %s", got)
		}
		allowed(t, call(h, "POST", "/orders/7", peer).Result())
		allowed(t, call(h, "POST", "/elsewhere", peer, "Internal-Route", "import").Result())
		refused(t, call(h, "POST", "/orders/8", peer).Result(), 429, shed.OverLimit)
		refused(t, call(h, "POST", "/x/..//orders/8", peer).Result(), 429, shed.OverLimit)
		allowed(t, call(h, "PUT", "/orders/8", peer).Result())
	})
}

func TestConfigurationErrorsSayWhatAndWhere(t *testing.T) {
	pattern := open(t, 1, func(c *shed.Config) { c.Routes = []shed.Route{{Name: "a", Match: "no-slash"}} })
	clients := open(t, 1, func(c *shed.Config) { c.Clients.Identify = []string{"principal"} })
	for want, cfg := range map[string]middleware.Config{
		"middleware: no Shedder; make one with shed.New":           {},
		`middleware: route "a": match "no-slash": `:                {Shedder: pattern},
		`middleware: clients.identify lists principal, but the pr`: {Shedder: clients},
	} {
		if _, err := middleware.ShedWithConfig(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
		_, err := echomw.Config{Shedder: cfg.Shedder}.ToMiddleware()
		if err == nil || !strings.HasPrefix(err.Error(), strings.Replace(want, "middleware", "echomw", 1)) {
			t.Errorf("Echo's error is %v, want %s", err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Shed let a bad pattern pass")
		}
	}()
	middleware.Shed(pattern)
}
