package operate

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

func TestOperatorsOnThisMachineLookWithoutTheToken(t *testing.T) {
	s, err := shed.New(shed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	token := strings.Repeat("t", 40)
	p, err := pumpkin.New(pumpkin.Config{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	away := false
	h := Console{
		Shedder: s, Pumpkin: p, Draining: func() bool { return away },
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	}.Handler()
	ask := func(path, remote, host, auth string) int {
		r := httptest.NewRequest("GET", path, nil)
		r.RemoteAddr, r.Host = remote, host
		if auth != "" {
			r.Header.Set("Authorization", "Bearer "+auth)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, path := range []string{"/debug/spillway", "/metrics", "/dashboard/"} {
		for _, row := range []struct {
			remote, host, token string
			want                int
		}{
			{"127.0.0.1:9", "localhost:9180", "", 200},
			{"[::1]:9", "[::1]:9180", "", 200},
			{"127.0.0.1:9", "evil.example", "", 401}, // a page whose name was made to point here
			{"192.0.2.1:9", "localhost:9180", "", 401},
			{"192.0.2.1:9", "127.0.0.1", token, 200},
			{"127.0.0.1:9", "localhost", strings.Repeat("x", 40), 401},
		} {
			if got := ask(path, row.remote, row.host, row.token); got != row.want {
				t.Errorf("%s from %s as %s: %d, want %d", path, row.remote, row.host, got, row.want)
			}
		}
	}
	if ask("/livez", "192.0.2.1:9", "x", "") != 200 || ask("/readyz", "192.0.2.1:9", "x", "") != 200 {
		t.Error("probes need no token")
	}
	if away = true; ask("/readyz", "192.0.2.1:9", "x", "") != 503 || ask("/livez", "192.0.2.1:9", "x", "") != 200 {
		t.Error("a program that goes away is alive and not ready")
	}
}

func TestAListenerThatCannotBeOpenedSaysHowToMendIt(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for addr, want := range map[string]string{
		taken.Addr().String(): "app: cannot listen on " + taken.Addr().String() + ": another program does; stop it or choose another address with -listen",
		"nonsense":            "app: cannot listen on nonsense: ",
	} {
		l, err := Listen("app", "-listen", addr, func() (net.Listener, error) { return net.Listen("tcp", addr) })
		if l != nil || err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "-listen") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	_, err = Listen("app", "-admin", "0.0.0.0:0", func() (net.Listener, error) { return pumpkin.ListenAdmin("0.0.0.0:0", false) })
	if !errors.Is(err, pumpkin.ErrNeedsToken) {
		t.Errorf("%v", err)
	}
}

func TestReachable(t *testing.T) {
	for addr, want := range map[string]string{"0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80", "10.0.0.1:80": "10.0.0.1:80"} {
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := Reachable(a); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

// TestPolls: clients are told the new pace, and only what was changed is reported.
func TestPolls(t *testing.T) {
	p, err := pumpkin.New(pumpkin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	idle := func(c configfile.Pumpkin) time.Duration { return c.PollIdle }
	was := configfile.Pumpkin{}
	if got := Polls(p, was, was, idle); got != nil {
		t.Errorf("nothing changed, and told of %q", got)
	}
	next := configfile.Pumpkin{PollAfter: 20 * time.Second, PollIdle: 30 * time.Second}
	want := []string{"pumpkin.poll_after default -> 20s", "pumpkin.poll_idle default -> 30s"}
	if got := Polls(p, was, next, idle); !slices.Equal(got, want) {
		t.Errorf("told of %q, want %q", got, want)
	}
	rec := httptest.NewRecorder()
	p.Public().ServeHTTP(rec, httptest.NewRequest("GET", "/pumpkin.json", nil))
	if !strings.Contains(rec.Body.String(), `"poll_after":30`) {
		t.Errorf("while all is well clients are told %s", rec.Body)
	}
}

func TestAListenerIsAskedByItsURLOrThroughItsSocket(t *testing.T) {
	for _, row := range []struct {
		addr      net.Addr
		url, curl string
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, "http://127.0.0.1:80", ""},
		{&net.TCPAddr{IP: net.IPv4zero, Port: 80}, "http://127.0.0.1:80", ""},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 80}, "http://[2001:db8::1]:80", ""},
		{&net.UnixAddr{Name: "/run/admin.sock", Net: "unix"}, "http://localhost", "--unix-socket /run/admin.sock "},
	} {
		if url, curl := URL(row.addr); url != row.url || curl != row.curl {
			t.Errorf("%v: %q, %q", row.addr, url, curl)
		}
	}
}
