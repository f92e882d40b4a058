package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/wait"
)

// raw sends text as it is, half-closes the connection if it shall end there, and returns how to read the answers.
func raw(t *testing.T, g *gateway, text string, ends bool) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url("proxy", ""), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-sent })
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // only ends a test that fails
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, text) // who is refused may not be read to the end
		if ends {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}()
	return bufio.NewReader(conn)
}

// told is what a service was asked.
type told struct {
	Method, URI, Host, Body string
	Fields                  int
	Trailer                 http.Header
}

// Whatever a client writes, the service is asked exactly what has been decided about, once for each time, and no client's doing is taken
// for a service that is short.
func TestTheServiceSeesWhatWasDecidedAbout(t *testing.T) {
	seen := make(chan told, 9)
	back := upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = append(body, "|broken off"...)
		}
		seen <- told{r.Method, r.RequestURI, r.Host, string(body), len(r.Header), r.Trailer}
	})
	const head, post, chunked = " HTTP/1.1\r\nHost: x\r\n", "POST / HTTP/1.1\r\nHost: x\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	long, thousand := strings.Repeat("l", 64<<10), strings.Builder{}
	for i := range 1000 {
		fmt.Fprintf(&thousand, "X-Field-%d: v\r\n", i)
	}
	empty := told{Method: "POST", URI: "/", Host: "x"}
	with := func(change func(*told)) told { c := empty; change(&c); return c }
	body := func(text string) told { return with(func(c *told) { c.Body = text }) }
	got := func(uri, host string) told { return told{Method: "GET", URI: uri, Host: host} }
	for name, row := range map[string]struct {
		text   string
		status []int
		ends   bool   // the client sends no more
		asked  []told // of the service
		says   string // the answer of the gateway
	}{
		// size
		"more than 1 MB of fields": {text: "GET /" + head + "X-Big: " + strings.Repeat("b", 11<<17) + "\r\n\r\n", status: []int{431}},
		"1 MB of fields":           {text: "GET /" + head + "X-Big: " + strings.Repeat("b", 1<<20-99) + "\r\n\r\n", status: []int{200}, asked: []told{got("/", "x")}},
		"64 KiB of request line":   {text: "GET /" + long + head + "\r\n", status: []int{200}, asked: []told{got("/"+long, "x")}},
		"1000 fields":              {text: "GET /" + head + thousand.String() + "\r\n", status: []int{200}, asked: []told{{Method: "GET", URI: "/", Host: "x", Fields: 1003}}},
		// bodies that are wrong
		"a bad chunk":               {text: post + chunked + "3\r\nabc\r\nzz\r\n", status: []int{400}, asked: []told{body("abc|broken off")}},
		"a chunk that is too short": {text: post + chunked + "3\r\nabcde\r\n0\r\n\r\n", status: []int{400}, asked: []told{body("abc|broken off")}},
		"no end":                    {text: post + "Content-Length: 40000\r\n\r\n" + strings.Repeat("e", 30000), ends: true, status: []int{400}, asked: []told{body(strings.Repeat("e", 30000) + "|broken off")}},
		// two lengths
		"both, and what the length hides": {text: post + "Content-Length: 4\r\n" + chunked + "0\r\n\r\nGET /two" + head + "\r\n",
			status: []int{200, 200}, asked: []told{empty, got("/two", "x")}},
		"both, and what the chunks hide": {text: post + "Content-Length: 48\r\n" + chunked + "3\r\nabc\r\n0\r\n\r\n", status: []int{200}, asked: []told{body("abc")}},
		"two lengths":                    {text: post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", status: []int{400}},
		"one length twice":               {text: post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", status: []int{200}, asked: []told{body("abcde")}},
		"a list of lengths":              {text: post + "Content-Length: 5, 5\r\n\r\nabcde", status: []int{400}},
		"a signed length":                {text: post + "Content-Length: +5\r\n\r\nabcde", status: []int{400}},
		"an unknown encoding":            {text: post + "Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\nabcde", status: []int{501}},
		"an encoding more":               {text: post + "Transfer-Encoding: identity\r\n" + chunked + "0\r\n\r\n", status: []int{501}},
		"a space before the colon":       {text: post + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\nabcde", status: []int{400}},
		"lengths called hop-by-hop": {text: post + "Connection: Content-Length, Host, X-Forwarded-For\r\nContent-Length: 5\r\n\r\nabcde",
			status: []int{200}, asked: []told{body("abcde")}},
		"no length, but asks first": {text: post + "Content-Length: 0\r\nExpect: 100-continue\r\n\r\n", status: []int{200}, asked: []told{empty}},
		"another expectation":       {text: post + "Content-Length: 0\r\nExpect: 200-ok\r\n\r\n", status: []int{417}},
		// trailers
		"a trailer":                   {text: post + "Trailer: X-Sum\r\n" + chunked + "3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n", status: []int{200}, asked: []told{with(func(c *told) { c.Body, c.Trailer = "abc", http.Header{"X-Sum": {"6"}} })}},
		"a trailer behind a long way": {text: post + "Trailer: X-Sum\r\n" + chunked + "10000\r\n" + long + "\r\n0\r\nX-Sum: 6\r\n\r\n", status: []int{200}, asked: []told{with(func(c *told) { c.Body, c.Trailer = long, http.Header{"X-Sum": {"6"}} })}},
		"a trailer nobody was told of": {text: post + chunked + "3\r\nabc\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n",
			status: []int{200}, asked: []told{body("abc")}},
		"trailers that claim": {text: post + "Trailer: X-Forwarded-For, X-Sum, X_Real_IP, bad name\r\n" + chunked + "10000\r\n" + long +
			"\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\nX_Real_IP: 6.6.6.6\r\nX-Sum: 6\r\nContent-Length: 3\r\nHost: y\r\nForwarded: for=6.6.6.6\r\n\r\n",
			status: []int{200}, asked: []told{with(func(c *told) { c.Body, c.Trailer = long, http.Header{"X-Sum": {"6"}} })}},
		"a trailer without end": {text: post + "Trailer: X-Sum\r\n" + chunked + "3\r\nabc\r\n0\r\nX-Sum: " + long + "\r\n\r\n", status: []int{400}, asked: []told{with(func(c *told) { c.Body, c.Trailer = "abc|broken off", http.Header{"X-Sum": nil} })}},
		// targets and methods
		"another host in the target": {text: "GET http://y/a" + head + "\r\n", status: []int{200}, asked: []told{got("/a", "y")}},
		"a target without path":      {text: "GET http://y?a=b" + head + "\r\n", status: []int{200}, asked: []told{got("/?a=b", "y")}},
		"an opaque target":           {text: "GET x:admin" + head + "\r\n", status: []int{400}, says: "bad_target"},
		"two hosts":                  {text: "GET /" + head + "Host: y\r\n\r\n", status: []int{400}},
		"a host with a path":         {text: "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", status: []int{400}},
		"a tunnel":                   {text: "CONNECT y:80" + head + "\r\n", status: []int{501}, says: "no_tunnel"},
		"an upgrade to nowhere":      {text: "GET /" + head + "Connection: Upgrade\r\nUpgrade: \xff\r\n\r\n", status: []int{200}, asked: []told{got("/", "x")}},
		"HTTP/1.0 with chunks":       {text: "POST / HTTP/1.0\r\nHost: x\r\n" + chunked + "3\r\nabc\r\n0\r\n\r\n", status: []int{200}, asked: []told{empty}},
		"the server in general":      {text: "OPTIONS *" + head + "\r\n", status: []int{200}},
		"HEAD":                       {text: "HEAD /" + head + "\r\n", status: []int{200}, asked: []told{{Method: "HEAD", URI: "/", Host: "x"}}},
		"OPTIONS":                    {text: "OPTIONS /" + head + "\r\n", status: []int{200}, asked: []told{{Method: "OPTIONS", URI: "/", Host: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := inFront(t, back, "limits: [{name: r, token_bucket: {capacity: 9, refill: 1/day}, per: ip}]")
			answers := raw(t, g, row.text, row.ends)
			method, _, _ := strings.Cut(row.text, " ")
			for _, want := range row.status {
				res, err := http.ReadResponse(answers, &http.Request{Method: method})
				if err != nil {
					t.Fatal(err)
				}
				gone := row.ends && res.StatusCode == 499 // as which the server sees it when it looks for more
				said, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != want && !gone || !strings.Contains(string(said), row.says) {
					t.Errorf("%s %s, %v, want %d %s", res.Status, said, err, want, row.says)
				}
			}
			for _, want := range row.asked {
				have := <-seen
				if have.Fields < 1000 { // else the few that every request has do not matter
					have.Fields = 0
				}
				if a, b := fmt.Sprintf("%+v", have), fmt.Sprintf("%+v", want); a != b {
					t.Errorf("the service is asked\n%.300s, not\n%.300s", a, b)
				}
			}
			select {
			case more := <-seen:
				t.Errorf("the service is asked %.300v, too", more)
			default:
			}
			wait.Until(t, "given back", func() bool { return g.shedder.Status().InFlight == 0 })
			if st := g.shedder.Status(); st.Finished["dropped"] != 0 || st.Admitted < int64(len(row.asked)) || row.status[0] == 400 && st.Finished["success"] != 0 && row.says == "" {
				t.Errorf("admitted %d, finished %v", st.Admitted, st.Finished)
			}
		})
	}
}

// What a response says behind its body comes through, announced or not, and so does what it says on the way, with the fields of the
// gateway on the final one.
func TestTrailersAndHintsOfAServiceComeThrough(t *testing.T) {
	back := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("Pumpkin-Rev", "its own")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Sum", "7")
		w.Header().Set(http.TrailerPrefix+"X-More", "8")
	})
	g := inFront(t, back, "")
	answers := raw(t, g, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", false)
	tp := textproto.NewReader(answers)
	if line, err := tp.ReadLine(); line != "HTTP/1.1 103 Early Hints" || err != nil {
		t.Fatalf("%s, %v", line, err)
	}
	if _, err := tp.ReadMIMEHeader(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if string(body) != "body" || err != nil || res.Trailer.Get("X-Sum") != "7" || res.Trailer.Get("X-More") != "8" {
		t.Errorf("%s %v, trailers %v", body, err, res.Trailer)
	}
	for _, field := range []string{"RateLimit", "RateLimit-Policy", "Pumpkin-Rev", "Link"} {
		if lines := res.Header.Values(field); len(lines) != 1 || lines[0] == "its own" {
			t.Errorf("%s: %q", field, res.Header.Values(field))
		}
	}
}

// A peer passes bodies and trailers on as they came, and tells who has broken off.
func TestPeersPassBodiesOnAsTheyCame(t *testing.T) {
	all := fleet(t, 2, fleetFile)
	key := ""
	for i := 0; key == ""; i++ { // a client of the second
		if k := fmt.Sprintf("client-%d", i); pick(all[0].proxy.peers.members, "key:"+k).name == all[1].proxy.peers.self.name {
			key = k
		}
	}
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode(told{Body: string(body), Trailer: r.Trailer})
	})
	all[1].proxy.table.Store(newTable(nil, mustUpstream(t, back)))
	head := "POST / HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + "\r\nTrailer: X-Sum, bad name\r\nTransfer-Encoding: chunked\r\n\r\n"
	for text, want := range map[string]int{head + "3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n": 200, head + "3\r\nabc\r\nzz\r\n": 400} {
		res, err := http.ReadResponse(raw(t, all[0], text, false), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != want || want == 200 && string(body) != `{"Method":"","URI":"","Host":"","Body":"abc","Fields":0,"Trailer":{"X-Sum":["6"]}}`+"\n" {
			t.Errorf("%s: %s", res.Status, body)
		}
		if want == 400 && !strings.Contains(string(body), "body_failed") {
			t.Errorf("%s", body)
		}
	}
	for _, g := range all {
		if st := g.shedder.Status(); st.Finished["dropped"] != 0 {
			t.Errorf("finished %v", st.Finished)
		}
	}
}

// By way of a peer a service sees the same as without.
func TestPeersPassRequestsOnAsTheyCame(t *testing.T) {
	type seen struct {
		URI, Host string
		Header    http.Header
	}
	for _, forwarded := range []string{"x_forwarded_for", "forwarded"} {
		all := fleet(t, 2, "clients: {identify: [api_key, ip], trusted_proxies: [127.0.0.0/8], forwarded: "+forwarded+"}\n")
		back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewEncoder(w).Encode(seen{r.RequestURI, r.Host, r.Header})
		})
		answers := map[string]bool{}
		for i := range 20 { // of both, by chance: all by one once in 10^6
			for _, g := range all {
				g.proxy.table.Store(newTable(nil, mustUpstream(t, back)))
			}
			text := fmt.Sprintf("GET /a%%2Fb?x=%%zz;y HTTP/1.1\r\nHost: shop.example\r\nX-API-Key: k%d\r\nX-Forwarded-For: 203.0.113.7\r\n"+
				"X-Forwarded-Host: www.example\r\nX-Forwarded-Proto: https\r\nForwarded: for=203.0.113.7\r\n\r\n", i)
			res, err := http.ReadResponse(raw(t, all[0], text, false), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got seen
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				t.Fatal(res.Status, err)
			}
			if ua := got.Header["User-Agent"]; ua != nil || got.Host != "shop.example" || got.URI != "/a%2Fb?x=%zz;y" {
				t.Fatalf("the service sees %+v", got)
			}
			delete(got.Header, "X-Api-Key")
			answers[fmt.Sprintf("%+v", got)] = true
		}
		if st := all[0].proxy.status().Peers; len(answers) != 1 || st[0].PassedOn == 0 || st[0].PassedOn == 20 {
			t.Errorf("passed on %d of 20, the service sees %q", st[0].PassedOn, slices.Collect(maps.Keys(answers)))
		}
	}
}
