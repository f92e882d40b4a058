package pumpkin

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestPollIsAnsweredWithAllHeaders(t *testing.T) {
	p := open(t, Config{})
	put(t, p, "search", off("Search is slow.", 1, "search"))
	constant := map[string]string{
		"Cache-Control":                 "public, max-age=5, stale-if-error=86400",
		"Cdn-Cache-Control":             "max-age=5, stale-while-revalidate=30, stale-if-error=86400",
		"Access-Control-Allow-Origin":   "*",
		"Access-Control-Expose-Headers": "ETag, Date, Age, Retry-After",
		"Cross-Origin-Resource-Policy":  "cross-origin",
		"X-Content-Type-Options":        "nosniff",
	}
	full := poll(p, http.MethodGet)
	tag := full.Header().Get("Etag")
	for name, w := range map[string]*httptest.ResponseRecorder{
		"full":         full,
		"head":         poll(p, http.MethodHead),
		"not modified": poll(p, http.MethodGet, "If-None-Match", tag),
	} {
		for key, want := range constant {
			if got := w.Header().Values(key); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q, want %q", name, key, got, want)
			}
		}
		if got := w.Header().Get("Etag"); got != tag || len(tag) != 14 {
			t.Errorf("%s: ETag %s, want %s of 12 characters", name, got, tag)
		}
		for _, key := range []string{"Vary", "Set-Cookie"} {
			if got := w.Header().Get(key); got != "" {
				t.Errorf("%s: %s is %q, want none", name, key, got)
			}
		}
	}
	if full.Code != 200 || full.Header().Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("full answer: %d %v", full.Code, full.Header())
	}
	if got := full.Header().Get("Content-Length"); got != strconv.Itoa(full.Body.Len()) {
		t.Errorf("Content-Length %s for %d bytes", got, full.Body.Len())
	}
	if head := poll(p, http.MethodHead); head.Code != 200 || head.Body.Len() != 0 {
		t.Errorf("HEAD: %d with %d bytes", head.Code, head.Body.Len())
	}
}

func TestPollMethods(t *testing.T) {
	p := open(t, Config{})
	preflight := poll(p, http.MethodOptions, "Origin", "https://shop.example", "Access-Control-Request-Headers", "if-none-match")
	for field, want := range map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*", "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
		"Access-Control-Max-Age": "86400", "Allow": "GET, HEAD, OPTIONS", "X-Content-Type-Options": "nosniff",
	} {
		if got := preflight.Header().Get(field); preflight.Code != 204 || got != want {
			t.Errorf("OPTIONS: %d, %s: %q, want %q", preflight.Code, field, got, want)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "get", ""} {
		w := httptest.NewRecorder()
		p.Public().ServeHTTP(w, &http.Request{Method: method})
		if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%q: %d %v", method, w.Code, w.Header())
		}
	}
	if s := p.Status(); s.Polls != 0 || s.NotModified != 0 {
		t.Errorf("neither is a poll, but counted %+v", s)
	}
}

// The whole way through net/http: what a handler's recorder does not show is what the server makes of the headers.
func TestPollOverTheWire(t *testing.T) {
	p := open(t, Config{})
	server := httptest.NewServer(p.Public())
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	get := func(method, tag string) (*http.Response, []byte) {
		t.Helper()
		r, _ := http.NewRequest(method, server.URL, nil)
		if tag != "" {
			r.Header.Set("If-None-Match", tag)
		}
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, body
	}
	full, body := get("GET", "")
	if full.StatusCode != 200 || !json.Valid(body) || full.ContentLength != int64(len(body)) {
		t.Errorf("GET: %d, length %d, %s", full.StatusCode, full.ContentLength, body)
	}
	head, nothing := get("HEAD", "")
	if head.StatusCode != 200 || head.ContentLength != int64(len(body)) || len(nothing) != 0 {
		t.Errorf("HEAD: %d, length %d", head.StatusCode, head.ContentLength)
	}
	cached, nothing := get("GET", "W/"+full.Header.Get("Etag"))
	if cached.StatusCode != 304 || len(nothing) != 0 || cached.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("304: %d %v", cached.StatusCode, cached.Header)
	}
}

// bareWriter is a ResponseWriter that costs nothing itself.
type bareWriter struct {
	header http.Header
	status int
}

func (w *bareWriter) Header() http.Header         { return w.header }
func (w *bareWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *bareWriter) WriteHeader(status int)      { w.status = status }

func TestPollAllocatesNothing(t *testing.T) {
	p := open(t, Config{})
	put(t, p, "search", off("Search is slow.", 1, "search"))
	tag := poll(p, http.MethodGet).Header().Get("Etag")
	for _, c := range []struct {
		tag    string
		status int
	}{{"", 200}, {`"other"`, 200}, {tag, 304}, {`"a", W/` + tag, 304}} {
		r := httptest.NewRequest(http.MethodGet, "/pumpkin.json", nil)
		r.Header.Set("If-None-Match", c.tag)
		w := &bareWriter{header: http.Header{}}
		handler := p.Public()
		allocs := testing.AllocsPerRun(200, func() {
			clear(w.header)
			handler.ServeHTTP(w, r)
		})
		if allocs != 0 || w.status != c.status {
			t.Errorf("If-None-Match %q: %v allocations and status %d, want 0 and %d", c.tag, allocs, w.status, c.status)
		}
	}
	if s := p.Status(); s.Polls < 400 || s.NotModified < 400 {
		t.Errorf("polls are not counted: %+v", s)
	}
}

func TestInstancesOfEqualStateAreByteEqual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := open(t, Config{})
		put(t, one, "b", off("second", 0, "z"))
		put(t, one, "a", off("first", 0.25, "y", "x"))
		time.Sleep(time.Minute)

		two := open(t, Config{})
		put(t, two, "b", off("second", math.Copysign(0, -1), "z")) // JSON knows -0 too
		put(t, two, "a", off("first", 0.25, "x", "y"))

		a, b := poll(one, "GET"), poll(two, "GET")
		if !bytes.Equal(a.Body.Bytes(), b.Body.Bytes()) || a.Header().Get("Etag") != b.Header().Get("Etag") {
			t.Errorf("bytes differ:\n%s%s", a.Body, b.Body)
		}
		put(t, two, "b", entry("third")) // the control: unequal state must show
		if b := poll(two, "GET"); bytes.Equal(a.Body.Bytes(), b.Body.Bytes()) || a.Header().Get("Etag") == b.Header().Get("Etag") {
			t.Errorf("another state has the same bytes or tag")
		}
	})
}

func TestExpiryShowsWithoutAnyRequestInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		long, short := entry("long"), off("short", 1, "search")
		long.TTL, short.TTL = 3*time.Minute, 90*time.Second
		put(t, p, "long", long)
		put(t, p, "short", short)
		before := p.current.Load()

		time.Sleep(90*time.Second - 1)
		synctest.Wait()
		if !bytes.Equal(p.current.Load().board.body, before.board.body) {
			t.Fatal("the document changed before the end of the TTL")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		// Looking at the snapshot, not through a method: nothing but the timer can have replaced it.
		if now := p.current.Load().board; now.rev != before.board.rev+1 || len(now.held) != 1 {
			t.Fatalf("after the TTL: rev %d with %d items, before: rev %d", now.rev, len(now.held), before.board.rev)
		}
		if _, _, off := p.FeatureOff("search", "c"); off {
			t.Error("the feature is still off")
		}

		time.Sleep(90*time.Second - 1)
		synctest.Wait()
		if !read(t, p).Active {
			t.Fatal("the longer item ended early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if d := read(t, p); d.Active || d.PollAfter != 60 || d.Rev != 4 {
			t.Errorf("after all TTLs: %+v", d)
		}
	})
}

func TestDocumentShape(t *testing.T) {
	p := open(t, Config{})
	if got, want := poll(p, "GET").Body.String(),
		`{"schema":1,"epoch":"`+testEpoch+`","rev":0,"active":false,"poll_after":60,"default_lang":"en","items":[]}`+"\n"; got != want {
		t.Errorf("empty document\n%swant\n%s", got, want)
	}
	put(t, p, "pay", Entry{
		Severity: Critical, Message: map[string]string{"en": "<b>Down</b>", "de": "Gestört"}, URL: "https://status.example/1",
		LinkText: "More", Sticky: true, RecoverSpread: 30, Features: map[string]Feature{"pay": {Off: 0.5}},
		Reason: "secret reason", Ticket: "T-1",
	})
	if got, want := poll(p, "GET").Body.String(),
		`{"schema":1,"epoch":"`+testEpoch+`","rev":1,"active":true,"poll_after":15,"default_lang":"en","items":[{"id":"pay",`+
			`"severity":"critical","message":{"de":"Gestört","en":"\u003cb\u003eDown\u003c/b\u003e"},"url":"https://status.example/1",`+
			`"link_text":"More","dismissible":false,"notice_rev":1,"recover_spread":30,"features":{"pay":{"off":0.5}}}]}`+"\n"; got != want {
		t.Errorf("document\n%swant\n%s", got, want)
	}
}

func TestClientsNeverHitTheirOwnCache(t *testing.T) {
	for poll := 5; poll <= 600; poll++ {
		p := open(t, Config{PollAfter: time.Duration(poll) * time.Second})
		var age int
		rest, ok := bytes.CutPrefix([]byte(p.current.Load().cacheControl[0]), []byte("public, max-age="))
		if !ok {
			t.Fatal(p.current.Load().cacheControl[0])
		}
		age = int(rest[0] - '0')
		if rest[1] != ',' || age < 3 || 10*age >= 8*poll {
			t.Errorf("poll_after %d s: max-age %d, must be below 0.8 of it", poll, age)
		}
	}
}
