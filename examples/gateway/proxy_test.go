package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/pumpkin"
)

// What a service sees is what the client sent, but for what a proxy has to change.
func TestTheServiceSeesTheRequestAsItWasSent(t *testing.T) {
	type seen struct {
		Method, URI, Host, Body string
		Header                  http.Header
	}
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Hop", "1")
		w.Header().Set("Connection", "X-Hop")
		json.NewEncoder(w).Encode(seen{r.Method, r.RequestURI, r.Host, string(body), r.Header})
	})
	g := inFront(t, back+"/base", "")
	r := request(t, "PATCH", g.url("proxy", "/a%2Fb//c/../d?x=1;y=2&z=%zz"), "the body",
		"Connection", "X-Private", "X-Private", "1", "Te", "trailers", "Proxy-Authorization", "secret", "Keep-Alive", "x",
		"X-Forwarded-For", "6.6.6.6", "X-Forwarded-Host", "evil", "X-Forwarded-Proto", "https", "Forwarded", "for=6.6.6.6",
		"X-Real-Ip", "6.6.6.6", "True-Client-Ip", "6.6.6.6", "Cf-Connecting-Ip", "6.6.6.6", "Spillway-Peer", "x", "Authorization", "Bearer b")
	r.Host = "shop.example"
	res, body := asked(t, r)
	var got seen
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if got.Method != "PATCH" || got.URI != "/base/a%2Fb//c/../d?x=1;y=2&z=%zz" || got.Host != "shop.example" || got.Body != "the body" {
		t.Errorf("%+v", got)
	}
	for field, want := range map[string]string{
		"X-Private": "", "Proxy-Authorization": "", "Keep-Alive": "", "Forwarded": "", "X-Real-Ip": "", "True-Client-Ip": "",
		"Cf-Connecting-Ip": "", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "http",
		"Authorization": "Bearer b", "Te": "trailers",
	} {
		if have := got.Header.Get(field); have != want {
			t.Errorf("%s: the service sees %q, want %q", field, have, want)
		}
	}
	if res.Header.Get("X-Hop") != "" || res.Header.Get("RateLimit-Policy") == "" || res.Header.Get("Pumpkin-Rev") == "" {
		t.Errorf("the client sees %v", res.Header)
	}
}

func TestATrustedProxysWordGoesOn(t *testing.T) {
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%s|%s|%s", r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"),
			r.Header.Get("Forwarded"), r.Header.Get("Cf-Connecting-Ip"))
	})
	claims := []string{
		"X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "shop.example",
		"Forwarded", "for=203.0.113.8", "Cf-Connecting-Ip", "203.0.113.9",
	}
	for _, row := range []struct{ clients, want string }{
		{"trusted_proxies: [127.0.0.0/8]", "203.0.113.7, 127.0.0.1|https|shop.example||"},
		{"trusted_proxies: [127.0.0.0/8], forwarded: forwarded", "127.0.0.1|https|shop.example|for=203.0.113.8|"},
		{"trusted_proxies: [127.0.0.0/8], forwarded: CF-Connecting-IP", "127.0.0.1|https|shop.example||203.0.113.9"},
		{"trusted_proxies: [10.0.0.0/8]", "127.0.0.1|http|HOST||"},
	} {
		g := inFront(t, back, "clients: {"+row.clients+"}")
		_, got := get(t, g.url("proxy", "/"), claims...)
		want := strings.Replace(row.want, "HOST", strings.TrimPrefix(g.url("proxy", ""), "http://"), 1)
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", row.clients, got, want)
		}
	}
}

// Rotating a header buys nothing: quotas go by the connection's address unless a proxy is trusted.
func TestNobodyChoosesItsOwnAddress(t *testing.T) {
	back := upstream(t, func(http.ResponseWriter, *http.Request) {})
	g := inFront(t, back, "limits: [{name: r, token_bucket: {capacity: 2, refill: 1/day}, per: ip}]")
	for i, want := range []int{200, 200, 429, 429} {
		ip := fmt.Sprintf("203.0.113.%d", i)
		res, body := get(t, g.url("proxy", "/"), "X-Forwarded-For", ip, "Forwarded", "for="+ip, "X-Real-IP", ip)
		if res.StatusCode != want {
			t.Errorf("request %d: %d, want %d", i, res.StatusCode, want)
		}
		if want == 429 && (res.Header.Get("Retry-After") == "" || !strings.Contains(body, `"over_limit"`)) {
			t.Errorf("refused with %v %s", res.Header, body)
		}
	}
}

func TestAnUpstreamThatDoesNotAnswerIsAProblemAndADrop(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	g := inFront(t, "http://"+dead.Addr().String(), "")
	res, body := get(t, g.url("proxy", "/"))
	if res.StatusCode != 502 || res.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"reason":"upstream_unreachable"`) {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
	wait.Until(t, "dropped", func() bool { return g.shedder.Status().Finished["dropped"] == 1 })

	// What people need while everything is down works all the same.
	if res, body := get(t, g.url("proxy", pumpkinPath)); res.StatusCode != 200 || !strings.Contains(body, `"poll_after"`) {
		t.Errorf("the poll: %d %s", res.StatusCode, body)
	}
	if res, _ := get(t, g.url("proxy", widgetPath)); res.StatusCode != 200 || !strings.Contains(res.Header.Get("Content-Type"), "javascript") {
		t.Errorf("the widget: %d %v", res.StatusCode, res.Header)
	}
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/debug/spillway", "/dashboard/"} {
		if res, _ := get(t, g.url("admin", path)); res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if st := g.proxy.status(); st.Failed["upstream_unreachable"] != 1 {
		t.Errorf("%+v", st)
	}
}

func TestAnUpstreamThatTakesTooLongIs504(t *testing.T) {
	free := make(chan struct{})
	back := upstream(t, func(http.ResponseWriter, *http.Request) { <-free })
	t.Cleanup(func() { close(free) }) // before the upstream is closed
	g := inFront(t, back, "")
	g.proxy.reverse.Transport.(*http.Transport).ResponseHeaderTimeout = 1 // a nanosecond, for a minute would be long
	res, body := get(t, g.url("proxy", "/"))
	if res.StatusCode != 504 || !strings.Contains(body, `"reason":"upstream_timeout"`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	wait.Until(t, "dropped", func() bool { return g.shedder.Status().Finished["dropped"] == 1 })
}

func TestRoutesChooseTheirUpstreamAlsoAfterAReload(t *testing.T) {
	say := func(name string) string {
		return upstream(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name+r.URL.Path) })
	}
	a, b, c := say("a"), say("b"), say("c")
	file := func(orders string) string {
		return "routes:\n  - {name: orders, match: \"/orders/{id...}\", upstream: \"" + orders + "\"}\n  - {name: rest, match: /rest}\n"
	}
	path := written(t, file(b))
	g := opened(t, func(o *options) { o.config, o.upstream = path, a })
	for path, want := range map[string]string{"/": "a/", "/orders/7": "b/orders/7", "/rest": "a/rest", "//orders/7": "b//orders/7"} {
		if _, got := get(t, g.url("proxy", path)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	writeFile(t, path, file(c))
	wait.Until(t, "reloaded", func() bool { return g.shedder.Status().Reloads.Applied == 1 })
	wait.Until(t, "sent elsewhere", func() bool { _, got := get(t, g.url("proxy", "/orders/7")); return got == "c/orders/7" })
	_, view := get(t, g.url("admin", "/debug/spillway"))
	if !strings.Contains(view, "route orders goes to "+c) {
		t.Error("the debug view does not say where requests go")
	}
}

func TestWithoutAnUpstreamForItARequestIsNotFound(t *testing.T) {
	back := upstream(t, func(http.ResponseWriter, *http.Request) {})
	g := opened(t, func(o *options) {
		o.config = written(t, "routes: [{name: a, match: /a, upstream: \""+back+"\"}]")
	})
	if res, _ := get(t, g.url("proxy", "/a")); res.StatusCode != 200 {
		t.Errorf("/a: %d", res.StatusCode)
	}
	if res, body := get(t, g.url("proxy", "/b")); res.StatusCode != 404 || !strings.Contains(body, "no_upstream") {
		t.Errorf("/b: %d %s", res.StatusCode, body)
	}
}

// What an answer is nobody but the service knows: where it does not say, Go would guess.
func TestTheTypeOfAnAnswerIsTheServices(t *testing.T) {
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		if r.URL.Path == "/typed" {
			w.Header().Set("Content-Type", "text/x-own")
		}
		io.WriteString(w, "<html><script>")
	})
	g := inFront(t, back, "queue: {}")
	for path, want := range map[string][]string{"/untyped": nil, "/typed": {"text/x-own"}} {
		if res, body := get(t, g.url("proxy", path)); !slices.Equal(res.Header["Content-Type"], want) || body != "<html><script>" {
			t.Errorf("%s: %q, want %q; %q", path, res.Header["Content-Type"], want, body)
		}
	}
}

func TestAFeatureThatIsOffIsRefusedHere(t *testing.T) {
	back := upstream(t, func(http.ResponseWriter, *http.Request) {})
	g := inFront(t, back, "routes: [{name: reports, match: /reports, feature: reports}]")
	r := request(t, "PUT", g.url("admin", "/items/x"), `{"severity":"major","message":{"en":"No reports today."},"features":{"reports":{"off":1}},"reason":"test"}`,
		"Authorization", "Bearer "+strings.Repeat("t", 32), "Content-Type", "application/json")
	if res, body := asked(t, r); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	res, body := get(t, g.url("proxy", "/reports"))
	if res.StatusCode != 503 || !strings.Contains(body, "No reports today.") || res.Header.Get("Pumpkin-Feature") != "reports" {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
	if _, doc := get(t, g.url("proxy", pumpkinPath)); !strings.Contains(doc, "No reports today.") {
		t.Error(doc)
	}
}

// The big switch is for all, also where the file names no feature.
func TestTheBigSwitchRefusesWhatHasNoFeature(t *testing.T) {
	back := upstream(t, func(http.ResponseWriter, *http.Request) {})
	g := inFront(t, back, "routes: [{name: items, match: /items}, {name: probes, match: /healthz, exempt: true}]")
	mode := func(method, body string, want int) {
		t.Helper()
		r := request(t, method, g.url("admin", "/mode"), body, "Authorization", "Bearer "+strings.Repeat("t", 32), "Content-Type", "application/json")
		if res, body := asked(t, r); res.StatusCode != want {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
	}
	mode("PUT", `{"on":true,"template":"site-down","ttl":"30m","reason":"test"}`, 200)
	for _, path := range []string{"/items", "/anything"} {
		res, body := get(t, g.url("proxy", path))
		if res.StatusCode != 503 || res.Header.Get("Pumpkin-Feature") != "*" || res.Header.Get("Retry-After") == "" ||
			!strings.Contains(body, "We are down at the moment.") || !strings.Contains(body, `"feature_off"`) {
			t.Errorf("%s: %d %v %s", path, res.StatusCode, res.Header, body)
		}
	}
	for _, path := range []string{"/healthz", pumpkinPath} {
		if res, _ := get(t, g.url("proxy", path)); res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	mode("DELETE", "", 204)
	if res, _ := get(t, g.url("proxy", "/items")); res.StatusCode != 200 {
		t.Errorf("afterwards %d", res.StatusCode)
	}
}

// An event stream comes through as it is written, holds no place under the limit, and ends properly when the gateway stops.
// The last resort is there without a word in a file: PUMPKIN_FILE.
func TestTheEnvironmentNamesABreakGlassFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "break.json")
	writeFile(t, path, `{"severity":"critical","message":{"en":"All down."},"features":{"*":{"off":1}}}`)
	t.Setenv(pumpkin.FileEnv, path)
	p := started(t, "-upstream", "http://127.0.0.1:1")
	if res, body := get(t, p.addrs["proxy"]+"/pumpkin.json"); res.StatusCode != 200 || !strings.Contains(body, "All down.") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	p.ends()
}

func TestAnEventStreamComesThrough(t *testing.T) {
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	g := opened(t, func(o *options) { o.upstream = back })
	res, err := http.DefaultClient.Do(request(t, "GET", g.url("proxy", "/events"), ""))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	if line, err := lines.ReadString('\n'); line != "data: 1\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if st := g.shedder.Status(); st.InFlight != 0 || st.Streams != 1 || g.proxy.streams.len() != 1 {
		t.Errorf("in flight %d, streams %d", st.InFlight, st.Streams)
	}
	g.proxy.streams.end()
	if rest, err := io.ReadAll(lines); err != nil || string(rest) != "\n" {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
	wait.Until(t, "given back", func() bool { return g.shedder.Status().Streams == 0 })
}

// A service that switches to what nobody asked for has failed, and its connection ends.
func TestAnotherProtocolThanWasAskedForIsAFailure(t *testing.T) {
	ended := make(chan error, 1)
	back := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n")
		_, err = rw.ReadByte()
		ended <- err
	})
	g := inFront(t, back, "")
	res, body := get(t, g.url("proxy", "/"), "Connection", "Upgrade", "Upgrade", "websocket")
	if res.StatusCode != http.StatusBadGateway {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the service reads %v, want the end", err)
	}
	if n := g.proxy.streams.len(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
	wait.Until(t, "given back", func() bool { return g.shedder.Status().InFlight == 0 })
	if dropped := g.shedder.Status().Finished["dropped"]; dropped != 0 {
		t.Errorf("%d are taken for an upstream that is short", dropped)
	}
}

// A WebSocket is an upgraded connection: what goes over it is not looked at.
func TestAnUpgradedConnectionComesThrough(t *testing.T) {
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(conn, "echo "+line)
		}
	})
	g := opened(t, func(o *options) { o.upstream = back })
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url("proxy", ""), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatalf("%v, %v", res, err)
	}
	for range 3 {
		io.WriteString(conn, "hello\n")
		if line, err := r.ReadString('\n'); line != "echo hello\n" || err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if st := g.shedder.Status(); st.InFlight != 0 || st.Streams != 1 {
		t.Errorf("in flight %d, streams %d", st.InFlight, st.Streams)
	}
	g.proxy.streams.end()
	if _, err := r.ReadString('\n'); err == nil {
		t.Error("the connection outlives the gateway")
	}
	wait.Until(t, "given back", func() bool { return g.shedder.Status().Streams == 0 })
}
