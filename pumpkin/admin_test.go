package pumpkin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// body is the JSON of a legal PUT with more fields appended.
func body(more string) string {
	return `{"severity":"major","message":{"en":"Search is slow."},"reason":"index rebuild"` + more + `}`
}

func TestPutShowsAndDeleteHides(t *testing.T) {
	p := open(t, Config{})
	w := call(p, "PUT", "/items/search", body(`,"features":{"search":{"off":1}},"ticket":"OPS-7"`))
	answers(t, w, 200, "")
	var got adminAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Rev != 1 || !*got.Changed || got.Item.Reason != "index rebuild" || got.Item.Ticket != "OPS-7" || !got.Item.Dismissible {
		t.Errorf("answer %s", w.Body)
	}
	if tag := w.Header().Get("ETag"); tag != `"`+p.Rev()+`"` || p.Rev() != testEpoch+".1" {
		t.Errorf("ETag %s, Rev %s", tag, p.Rev())
	}
	if public := poll(p, "GET").Body.String(); !strings.Contains(public, "Search is slow.") ||
		strings.Contains(public, "index rebuild") || strings.Contains(public, "OPS-7") {
		t.Errorf("the public sees %s", public)
	}
	if words, _, off := p.FeatureOff("search", "c"); !off || words != "Search is slow." {
		t.Errorf("FeatureOff: %q, %v", words, off)
	}
	for range 2 { // the second time nothing is there, and the answer is the same
		w = call(p, "DELETE", "/items/search", "")
		if answers(t, w, 204, ""); w.Body.Len() != 0 {
			t.Errorf("204 with a body: %s", w.Body)
		}
		if _, _, off := p.FeatureOff("search", "c"); off {
			t.Error("DELETE does not end the refusal")
		}
	}
	if d := read(t, p); d.Active || d.Rev != 2 {
		t.Errorf("after DELETE: %+v", d)
	}
}

func TestItemsAreReadWithTheirPrivateFields(t *testing.T) {
	p := open(t, Config{})
	if w := call(p, "GET", "/items", ""); !strings.Contains(w.Body.String(), `"items":[]`) {
		t.Errorf("no items: %s", w.Body)
	}
	call(p, "PUT", "/items/b", body(""))
	call(p, "PUT", "/items/a", body(`,"severity":"critical"`))
	answers(t, call(p, "PUT", "/items/a", body("")), 200, "")
	var list adminList
	w := call(p, "GET", "/items", "")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if list.Items[0].ID != "a" || list.Items[1].Reason != "index rebuild" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("list %s, header %v", w.Body, w.Header())
	}
	answers(t, call(p, "GET", "/items/a", ""), 200, "")
	answers(t, call(p, "GET", "/items/c", ""), 404, NotFound)
	answers(t, call(p, "GET", "/elsewhere", ""), 404, NotFound)
	for _, c := range [][3]string{{"POST", "/items/a", "DELETE"}, {"DELETE", "/items", "GET"}} {
		w := call(p, c[0], c[1], "")
		if answers(t, w, 405, MethodNotAllowed); !strings.Contains(w.Header().Get("Allow"), c[2]) {
			t.Errorf("%s %s: Allow %q", c[0], c[1], w.Header().Get("Allow"))
		}
	}
}

func TestTheSamePutTwiceOnlyExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		call(p, "PUT", "/items/search", body(`,"ttl":"10m"`))
		first := poll(p, "GET")
		time.Sleep(6 * time.Minute)
		w := call(p, "PUT", "/items/search", body(`,"ttl":"10m","ticket":"T"`))
		answers(t, w, 200, "")
		if !strings.Contains(w.Body.String(), `"changed":false`) {
			t.Errorf("answer %s", w.Body)
		}
		second := poll(p, "GET")
		if !bytes.Equal(first.Body.Bytes(), second.Body.Bytes()) || first.Header().Get("Etag") != second.Header().Get("Etag") {
			t.Errorf("the document changed:\n%s%s", first.Body, second.Body)
		}
		time.Sleep(10*time.Minute - 1)
		synctest.Wait()
		if !read(t, p).Active {
			t.Error("not extended")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if read(t, p).Active {
			t.Error("extended for too long")
		}
	})
}

func TestTTLDefaultsAndBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		start := time.Now()
		for _, c := range []struct {
			field string
			want  time.Duration // 0: refused
		}{
			{"", time.Hour}, {`,"ttl":"24h"`, 24 * time.Hour}, {`,"ttl":"1ns"`, 1}, {`,"ttl":"90s"`, 90 * time.Second},
			{`,"ttl":"25h"`, 0}, {`,"ttl":"24h0m0.000000001s"`, 0}, {`,"ttl":"0s"`, 0}, {`,"ttl":"-1m"`, 0}, {`,"ttl":""`, 0},
			{`,"ttl":"1"`, 0}, {`,"ttl":3600`, 0}, {`,"ttl":null`, 0}, {`,"ttl":"9999999h"`, 0},
		} {
			w := call(p, "PUT", "/items/x", body(c.field))
			if c.want == 0 {
				answers(t, w, 422, InvalidField)
				continue
			}
			answers(t, w, 200, "")
			if h, _ := p.current.Load().board.find("x"); h.expires.Sub(start) != c.want {
				t.Errorf("%s: expires after %v, want %v", c.field, h.expires.Sub(start), c.want)
			}
		}
	})
}

func TestHostileBodiesAreRefusedAndChangeNothing(t *testing.T) {
	languages := func(n int) string {
		s := `{"en":"x"`
		for i := range n - 1 {
			s += fmt.Sprintf(`,"a%c":"x"`, 'a'+i)
		}
		return s + "}"
	}
	message := func(m string) string { return `{"severity":"minor","reason":"r","message":` + m + `}` }
	for _, c := range []struct {
		name, body string
		status     int
		reason     Reason
	}{
		{"281 characters", message(`{"en":"` + strings.Repeat("ü", 281) + `"}`), 422, InvalidField},
		{"9 languages", message(languages(9)), 422, InvalidField},
		{"17 KiB", body(`,"ticket":"` + strings.Repeat("x", 17<<10) + `"`), 413, BodyTooLarge},
		{"17 KiB of spaces", body("") + strings.Repeat(" ", 17<<10), 413, BodyTooLarge},
		{"unknown field", body(`,"colour":"red"`), 422, UnknownField},
		{"field in capitals", body(`,"TTL":"1m"`), 422, UnknownField},
		{"field given twice", body(`,"reason":"again"`), 422, InvalidField},
		{"right-to-left override", message(`{"en":"safe \u202e desrever"}`), 422, InvalidField},
		{"isolate", message(`{"en":"a\u2066b"}`), 422, InvalidField},
		{"line break", message(`{"en":"a\nb"}`), 422, InvalidField},
		{"line separator", message(`{"en":"a\u2028b"}`), 422, InvalidField},
		{"half a surrogate pair", message(`{"en":"\ud800"}`), 422, InvalidField},
		{"invalid UTF-8", message("{\"en\":\"\xff\"}"), 400, MalformedJSON},
		{"blank message", message(`{"en":" "}`), 422, InvalidField},
		{"message of null", message(`{"en":null}`), 422, InvalidField},
		{"no default language", message(`{"de":"nein"}`), 422, InvalidField},
		{"no language", message(`{"en":"x","!":"x"}`), 422, InvalidField},
		{"no message", `{"severity":"minor","reason":"r"}`, 422, InvalidField},
		{"no reason", `{"severity":"minor","message":{"en":"x"}}`, 422, InvalidField},
		{"no severity", `{"reason":"r","message":{"en":"x"}}`, 422, InvalidField},
		{"severity of another kind", `{"severity":3,"reason":"r","message":{"en":"x"}}`, 422, InvalidField},
		{"unknown severity", `{"severity":"fatal","reason":"r","message":{"en":"x"}}`, 422, InvalidField},
		{"javascript URL", body(`,"url":"javascript:alert(1)"`), 422, InvalidField},
		{"javascript URL in disguise", body(`,"url":"JaVaScript://x/%0aalert(1)"`), 422, InvalidField},
		{"relative URL", body(`,"url":"//evil.example"`), 422, InvalidField},
		{"URL without host", body(`,"url":"https:///path"`), 422, InvalidField},
		{"URL with a tab", body(`,"url":"https://a.example/\t"`), 422, InvalidField},
		{"URL with a password", body(`,"url":"https://bank.example:x@evil.example/"`), 422, InvalidField},
		{"link text without URL", body(`,"link_text":"More"`), 422, InvalidField},
		{"share above 1", body(`,"features":{"a":{"off":1.01}}`), 422, InvalidField},
		{"share below 0", body(`,"features":{"a":{"off":-0.01}}`), 422, InvalidField},
		{"share out of range of numbers", body(`,"features":{"a":{"off":1e999}}`), 422, InvalidField},
		{"share of nothing", body(`,"features":{"a":{}}`), 422, InvalidField},
		{"share of null", body(`,"features":{"a":{"off":null}}`), 422, InvalidField},
		{"features of null", body(`,"features":null`), 422, InvalidField},
		{"dismissible of null", body(`,"dismissible":null`), 422, InvalidField},
		{"share of another name", body(`,"features":{"a":{"Off":1}}`), 422, UnknownField},
		{"feature as a boolean", body(`,"features":{"a":true}`), 422, InvalidField},
		{"feature without name", body(`,"features":{"":{"off":1}}`), 422, InvalidField},
		{"everything without confirmation", body(`,"features":{"*":{"off":1}}`), 422, ConfirmationNeeded},
		{"spread above an hour", body(`,"recover_spread":3601`), 422, InvalidField},
		{"blank ticket", body(`,"ticket":" "`), 422, InvalidField},
		{"ticket of 281 characters", body(`,"ticket":"` + strings.Repeat("ü", 281) + `"`), 422, InvalidField},
		{"URL of 1025 bytes", body(`,"url":"https://s.example/` + strings.Repeat("x", 1007) + `"`), 422, InvalidField},
		{"link text of 81 characters", body(`,"url":"https://s.example/","link_text":"` + strings.Repeat("ü", 81) + `"`), 422, InvalidField},
		{"language of 36 letters", message(`{"en":"x","` + strings.Repeat("abcdefgh-", 4) + `":"x"}`), 422, InvalidField},
		{"language of 37 letters", message(`{"en":"x","` + strings.Repeat("abcdefgh-", 4) + `a":"x"}`), 422, InvalidField},
		{"spread below 0", body(`,"recover_spread":-1`), 422, InvalidField},
		{"spread with a fraction", body(`,"recover_spread":1.5`), 422, InvalidField},
		{"start too far ahead", body(`,"starts_at":"9998-01-01T00:00:00Z"`), 422, InvalidField},
		{"start without an offset", body(`,"starts_at":"2030-01-01T00:00:00"`), 422, InvalidField},
		{"start of a day", body(`,"starts_at":"2030-01-01"`), 422, InvalidField},
		{"start as a number", body(`,"starts_at":1893456000`), 422, InvalidField},
		{"over already", body(`,"starts_at":"2001-01-01T00:00:00Z"`), 422, InvalidField},
		{"origin is not said", body(`,"origin":"auto"`), 422, UnknownField},
		{"id of another", body(`,"id":"y"`), 422, InvalidField},
		{"id as a number", body(`,"id":7`), 422, InvalidField},
		{"notice_rev as text", body(`,"notice_rev":"7"`), 422, InvalidField},
		{"notice_rev below 0", body(`,"notice_rev":-7`), 422, InvalidField},
		{"nested", strings.Repeat("[", 8000) + strings.Repeat("]", 8000), 422, InvalidField},
		{"cut off", `{"severity":"minor",`, 400, MalformedJSON},
		{"two values", body("") + body(""), 400, MalformedJSON},
		{"array", `[]`, 400, MalformedJSON},
		{"null", `null`, 422, InvalidField},
		{"empty", ``, 400, MalformedJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, Config{})
			put(t, p, "x", entry("before"))
			before := p.current.Load().board
			answers(t, call(p, "PUT", "/items/x", c.body, "Content-Type", "application/json"), c.status, c.reason)
			after := p.current.Load().board
			if !bytes.Equal(before.body, after.body) || !before.held[0].expires.Equal(after.held[0].expires) {
				t.Errorf("changed to %s", after.body)
			}
		})
	}
}

func TestWhatIsJustAllowedIsAccepted(t *testing.T) {
	p := open(t, Config{})
	for name, b := range map[string]string{
		"280 characters":      `{"severity":"minor","reason":"r","message":{"en":"` + strings.Repeat("ü", 280) + `"}}`,
		"marks and joiners":   `{"severity":"minor","reason":"r","message":{"en":"x","fa":"می\u200cخواهم\u200f 👩\u200d💻"}}`,
		"the ends of a share": body(`,"features":{"a":{"off":0},"b":{"off":1}}`),
		"tags":                `{"severity":"minor","reason":"r","message":{"en":"<script>alert(1)</script>"}}`,
		"all at its longest": body(`,"recover_spread":3600,"ticket":"` + strings.Repeat("ü", 280) + `","url":"https://s.example/` + strings.Repeat("x", 1006) +
			`","link_text":"` + strings.Repeat("ü", 80) + `"`),
		"8 languages, one long": `{"severity":"minor","reason":"r","message":{"en":"x","ab":"x","ac":"x","ad":"x","ae":"x","af":"x","ag":"x","` +
			strings.Repeat("abcdefgh-", 3) + `abcdefgh":"x"}}`,
		"not dismissible": body(`,"dismissible":false,"recover_spread":3600,"url":"http://s.example","link_text":"x"`),
	} {
		t.Run(name, func(t *testing.T) {
			answers(t, call(p, "PUT", "/items/x", b, "Content-Type", "application/json; charset=UTF-8"), 200, "")
			if got := read(t, p).Items[0].Dismissible; got == strings.Contains(b, `"dismissible":false`) {
				t.Errorf("it can be put away: %t", got)
			}
			if strings.Contains(poll(p, "GET").Body.String(), "<") {
				t.Error("the document could end a script element")
			}
		})
	}
	answers(t, call(p, "PUT", "/items/x?confirm=all", body(`,"features":{"*":{"off":1}}`)), 200, "")
	var shown struct{ Items []json.RawMessage }
	if err := json.Unmarshal(poll(p, "GET").Body.Bytes(), &shown); err != nil || len(shown.Items) != 1 {
		t.Fatalf("%s, %v", poll(p, "GET").Body, err)
	}
	again := strings.Replace(string(shown.Items[0]), "{", `{"ttl":"2h","reason":"longer",`, 1) // as it was read
	w := call(p, "PUT", "/items/x?confirm=all", again)
	if answers(t, w, 200, ""); !strings.Contains(w.Body.String(), `"changed":false`) {
		t.Errorf("what was read and put again is something else: %s", w.Body)
	}
	for _, id := range []string{".x", "-", "a%2Fb", "%00", "ä", strings.Repeat("x", 65), "a%20b"} {
		answers(t, call(p, "PUT", "/items/"+id, body("")), 422, InvalidField)
		answers(t, call(p, "DELETE", "/items/"+id, ""), 204, "")
	}
}

func TestDocumentStaysSmall(t *testing.T) {
	p := open(t, Config{})
	for i := range maxItems {
		answers(t, call(p, "PUT", fmt.Sprintf("/items/i%d", i), body("")), 200, "")
	}
	answers(t, call(p, "PUT", "/items/i16", body("")), 422, TooManyItems)
	answers(t, call(p, "PUT", "/items/i15", body("")), 200, "")                               // replacing one is no 17th
	long := `{"severity":"minor","reason":"r","message":{"en":"` + strings.Repeat("<", 280) + // 6 bytes each
		`","de":"` + strings.Repeat("<", 280) + `"}}`
	answers(t, call(p, "PUT", "/items/i15", long), 422, DocumentTooLarge)
	if n := len(read(t, p).Items); n != maxItems {
		t.Errorf("%d items", n)
	}
}

func TestDryRunShowsAndChangesNothing(t *testing.T) {
	p := open(t, Config{})
	put(t, p, "x", entry("before"))
	before := p.current.Load()
	w := call(p, "PUT", "/items/y?dry_run=1", body(`,"features":{"*":{"off":1}}`))
	answers(t, w, 200, "")
	var d Document
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || len(d.Items) != 2 || d.Rev != 2 {
		t.Errorf("%v: %s", err, w.Body)
	}
	if h := w.Header(); h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", h)
	}
	w = call(p, "DELETE", "/items/x?dry_run=1", "")
	if answers(t, w, 200, ""); !strings.Contains(w.Body.String(), `"active":false`) {
		t.Errorf("DELETE: %s", w.Body)
	}
	answers(t, call(p, "PUT", "/items/y?dry_run=1", body(`,"ttl":"25h"`)), 422, InvalidField)
	for _, query := range []string{"dryrun=1", "dry_run=0", "dry_run", "dry_run=1&dry_run=1", "%zz", "confirm=yes", "x=1"} {
		answers(t, call(p, "PUT", "/items/x?"+query, body("")), 422, InvalidParameter)
		answers(t, call(p, "DELETE", "/items/x?"+query, ""), 422, InvalidParameter)
	}
	if p.current.Load() != before {
		t.Error("something changed")
	}
	put(t, p, "y", off("real", 1, "*"))
	if !bytes.Contains(p.current.Load().board.body, []byte(`"rev":2`)) {
		t.Error("the rev that was foretold did not come")
	}
}

func TestStalePutIsRefused(t *testing.T) {
	p := open(t, Config{})
	first := call(p, "PUT", "/items/x", body(""), "If-None-Match", "*").Header().Get("ETag")
	answers(t, call(p, "PUT", "/items/x", body(""), "If-None-Match", "*"), 412, Exists)
	answers(t, call(p, "PUT", "/items/x", body(""), "If-None-Match", `"1"`), 422, InvalidParameter)
	for tag, status := range map[string]int{
		`"1"`: 200, first: 200, `"7", "1"`: 200, `*`: 200,
		`"0"`: 412, `"2"`: 412, `1`: 412, `W/"1"`: 412, `"01OTHER.1"`: 412, ``: 412,
	} {
		reason := StaleRev
		if status == 200 {
			reason = ""
		}
		answers(t, call(p, "PUT", "/items/x", body(""), "If-Match", tag), status, reason)
	}
	answers(t, call(p, "PUT", "/items/new", body(""), "If-Match", "*"), 412, StaleRev)
	answers(t, call(p, "PUT", "/items/new?dry_run=1", body(""), "If-Match", `"9"`), 412, StaleRev)
	answers(t, call(p, "DELETE", "/items/x", "", "If-Match", `"9"`), 204, "") // ending an item is never refused
}

func TestPagesOfAnotherOriginCannotWrite(t *testing.T) {
	p := open(t, Config{})
	answers(t, call(p, "PUT", "/items/x", body(""), "Sec-Fetch-Site", "cross-site"), 403, CrossOrigin)
	answers(t, call(p, "DELETE", "/items/x", "", "Origin", "https://evil.example"), 403, CrossOrigin)
	for _, contentType := range []string{"text/plain", "", "application/json; charset=latin1", "application/jsonx", "multipart/form-data"} {
		answers(t, call(p, "PUT", "/items/x", body(""), "Content-Type", contentType), 415, NotJSON)
	}
	if read(t, p).Rev != 0 {
		t.Error("something changed")
	}
	answers(t, call(p, "PUT", "/items/x", body(""), "Sec-Fetch-Site", "same-origin"), 200, "")
}

func TestWritesAreLoggedWithWhoWhatAndWhyButNeverTheToken(t *testing.T) {
	var log bytes.Buffer
	p := open(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	call(p, "PUT", "/items/x", body(`,"ticket":"OPS-7"`))
	call(p, "DELETE", "/items/x", "")
	call(p, "PUT", "/items/x", body(""), "Authorization", "Bearer wrong-"+testToken)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), log.String())
	}
	for i, wants := range [][]string{
		{"item put", "id=x", "actor=admin", "remote=192.0.2.1:1234", `reason="index rebuild"`, "ticket=OPS-7", "rev=1"},
		{"item deleted", "id=x", "actor=admin", `reason="index rebuild"`, "found=true", "rev=2"},
		{"level=WARN", "wrong token", "remote=192.0.2.1:1234"},
	} {
		for _, want := range wants {
			if !strings.Contains(lines[i], want) {
				t.Errorf("line %q lacks %q", lines[i], want)
			}
		}
	}
	if strings.Contains(log.String(), testToken) {
		t.Errorf("the token is in the log:\n%s", log.String())
	}
}

func TestClosedRefusesWritesAndStillAnswersPolls(t *testing.T) {
	p := open(t, Config{})
	put(t, p, "x", entry("stays"))
	p.Close()
	p.Close()
	answers(t, call(p, "PUT", "/items/x", body("")), 503, Closed)
	answers(t, call(p, "DELETE", "/items/x", ""), 503, Closed)
	if !read(t, p).Active {
		t.Error("the document is gone")
	}
}

func TestAdminCanBeMountedBesideOtherGuardedHandlers(t *testing.T) {
	p := open(t, Config{})
	mux := http.NewServeMux()
	mux.Handle("/", p.Admin())
	mux.Handle("GET /debug/spillway", p.Authorize(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})))
	ask := func(path, token string) int {
		r := httptest.NewRequest("GET", "http://localhost"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code
	}
	if a, b, c := ask("/debug/spillway", testToken), ask("/debug/spillway", "wrong"), ask("/items", testToken); a != 418 || b != 401 || c != 200 {
		t.Errorf("debug with token %d, without %d, items %d", a, b, c)
	}
}
