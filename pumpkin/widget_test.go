package pumpkin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// widgetLimit is what the script may weigh on the wire, in bytes.
const widgetLimit = 2500

func TestWidgetIsSmall(t *testing.T) {
	w := script(t, Widget(), "GET", "Accept-Encoding", "gzip")
	if n := w.Body.Len(); n > widgetLimit || n < 500 {
		t.Errorf("gzipped, the widget has %d bytes, at most %d are promised", n, widgetLimit)
	}
}

// The served file is made from the readable one by go generate.
func TestWidgetIsMadeFromItsSource(t *testing.T) {
	made, err := exec.Command("go", "tool", "esbuild", "widget/pumpkin.js", "--minify", "--charset=utf8", "--target=es2022").Output()
	if err != nil {
		t.Fatalf("esbuild: %v", err)
	}
	if !bytes.Equal(made, widgetScript) {
		t.Error("widget/pumpkin.min.js is not what widget/pumpkin.js makes; run: go generate ./pumpkin")
	}
	generate, err := os.ReadFile("widget.go")
	if err != nil || !bytes.Contains(generate, []byte("//go:generate go tool esbuild widget/pumpkin.js --minify --charset=utf8 --target=es2022 ")) {
		t.Errorf("go generate does not make the file as this test does: %v", err)
	}
}

// What a strict policy or Trusted Types would refuse is not in the source, and neither is what would reload a page.
func TestWidgetHasNothingThatAPolicyForbids(t *testing.T) {
	for _, forbidden := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "reload(",
		"createElement(\"style", "\"style\"", ".cookie", "XMLHttpRequest"} {
		if bytes.Contains(widgetScript, []byte(forbidden)) {
			t.Errorf("the widget uses %s", forbidden)
		}
	}
}

func script(t *testing.T, h http.Handler, method string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/pumpkin.js", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWidgetIsServedByBothHandlers(t *testing.T) {
	p := open(t, Config{})
	for name, h := range map[string]http.Handler{"Widget": Widget(), "Public": p.Public()} {
		plain := script(t, h, "GET")
		if plain.Code != 200 || !bytes.Equal(plain.Body.Bytes(), widgetScript) || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %d with %d bytes and %v", name, plain.Code, plain.Body.Len(), plain.Header())
		}
		packed := script(t, h, "GET", "Accept-Encoding", "br, gzip;q=0.5")
		if packed.Header().Get("Content-Encoding") != "gzip" || packed.Header().Get("Etag") == plain.Header().Get("Etag") {
			t.Errorf("%s: gzip: %v", name, packed.Header())
		}
		if unpacked, err := gzip.NewReader(packed.Body); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if b, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(b, widgetScript) {
			t.Errorf("%s: gzip holds something else: %v", name, err)
		}
		for key, want := range map[string]string{
			"Content-Type": "text/javascript; charset=utf-8", "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding",
			"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin",
			"Cache-Control": "public, max-age=3600, stale-while-revalidate=86400, stale-if-error=604800",
		} {
			if got := plain.Header().Get(key); got != want {
				t.Errorf("%s: %s is %q, want %q", name, key, got, want)
			}
		}
		head := script(t, h, "HEAD")
		if head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("Content-Length") != plain.Header().Get("Content-Length") {
			t.Errorf("%s: HEAD: %d, %d bytes, %v", name, head.Code, head.Body.Len(), head.Header())
		}
		for _, same := range []struct{ accept, tag string }{{"", plain.Header().Get("Etag")}, {"gzip", "W/" + packed.Header().Get("Etag")}} {
			w := script(t, h, "GET", "Accept-Encoding", same.accept, "If-None-Match", same.tag)
			if w.Code != 304 || w.Body.Len() != 0 || w.Header().Get("Etag") == "" || w.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s: If-None-Match %s: %d %v", name, same.tag, w.Code, w.Header())
			}
		}
		if w := script(t, h, "OPTIONS"); w.Code != 204 {
			t.Errorf("%s: OPTIONS: %d", name, w.Code)
		}
		if w := script(t, h, "POST"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: POST: %d %v", name, w.Code, w.Header())
		}
	}
	if s := p.Status(); s.Polls != 0 {
		t.Errorf("the script counts as a poll: %+v", s)
	}
}

func TestAcceptsGzip(t *testing.T) {
	for accept, want := range map[string]bool{
		"gzip": true, "GZIP": true, "gzip, deflate, br": true, "br;q=1, gzip ; q=0.1": true, "gzip;q=1.000": true,
		"": false, "br": false, "*": false, "gzip;q=0": false, "gzip; q=0.000": false, "xgzip": false, "identity": false,
	} {
		if got := acceptsGzip([]string{accept}); got != want {
			t.Errorf("%q: %v, want %v", accept, got, want)
		}
	}
}

func TestWidgetIntegrityIsThatOfTheScript(t *testing.T) {
	body := script(t, Widget(), "GET").Body.Bytes()
	sum := sha512.Sum384(body)
	if want := "sha384-" + base64.StdEncoding.EncodeToString(sum[:]); WidgetIntegrity() != want || !strings.HasPrefix(want, "sha384-") {
		t.Errorf("%s, want %s", WidgetIntegrity(), want)
	}
}
