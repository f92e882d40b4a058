package web_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/demo/internal/web"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

func page(t *testing.T) http.Handler {
	t.Helper()
	s, err := shed.New(shed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h, err := web.Handler(s, 800, func() any { return "extra" })
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestEveryFileIsServedUnderThePolicyAndItsOwnType(t *testing.T) {
	h, paths := page(t), web.Paths()
	for _, must := range []string{"/", web.Icon, web.Stats, "/assets/live.js", "/assets/style.css", "/assets/demo.js", "/assets/banner.js"} {
		if !slices.Contains(paths, must) {
			t.Errorf("%s is not among %v", must, paths)
		}
	}
	for _, path := range paths {
		w := get(h, path)
		if w.Code != http.StatusOK || w.Body.Len() == 0 || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: status %d, %d bytes, %q", path, w.Code, w.Body.Len(), w.Header().Get("Content-Type"))
		}
		if path != web.Stats && w.Header().Get("Content-Security-Policy") != middleware.DashboardPolicy {
			t.Errorf("%s lacks the policy: %v", path, w.Header())
		}
	}
	if w := get(h, "/assets/nothing.js"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown file: status %d, want 404", w.Code)
	}
}

// The browser refuses what the policy forbids, but silently to everybody who does not look at its console. So the files
// themselves must hold nothing of it.
func TestThePageHoldsNothingThatThePolicyForbids(t *testing.T) {
	h := page(t)
	for _, c := range []struct{ what, pattern string }{
		{"an inline script", `(?i)<script(?:\s[^>]*)?>[^<]`},
		{"an inline handler", `(?i)\son\w+\s*=\s*["']`},
		{"an inline style", `(?i)\sstyle\s*=|<style`},
		{"eval", `\beval\(|new Function\(`},
		{"HTML made from strings", `innerHTML|outerHTML|insertAdjacentHTML|document\.write`},
		{"something from the network", `(?:src|href)\s*=\s*["']https?:|url\(|@import|fetch\(\s*["'` + "`" + `]https?:`},
	} {
		pattern := regexp.MustCompile(c.pattern)
		for _, path := range web.Paths() {
			if found := pattern.FindString(get(h, path).Body.String()); found != "" {
				t.Errorf("%s holds %s: %q", path, c.what, found)
			}
		}
	}
}

func TestEveryFileAndElementThatThePageNamesIsThere(t *testing.T) {
	h := page(t)
	text := get(h, "/").Body.String()
	for _, m := range regexp.MustCompile(`(?:src|href)="/?(assets/[^"]+)"`).FindAllStringSubmatch(text, -1) {
		if w := get(h, "/"+m[1]); w.Code != http.StatusOK {
			t.Errorf("the page names %s: status %d", m[1], w.Code)
		}
	}
	for _, script := range []string{"/assets/live.js", "/assets/demo.js"} {
		code := get(h, script).Body.String()
		for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(code, -1) {
			if w := get(h, "/assets/"+m[1]); w.Code != http.StatusOK {
				t.Errorf("%s imports %s: status %d", script, m[1], w.Code)
			}
		}
		for _, m := range regexp.MustCompile(`\$\("([a-z0-9-]+)"\)`).FindAllStringSubmatch(code, -1) {
			if !strings.Contains(text, `id="`+m[1]+`"`) {
				t.Errorf("%s looks for #%s, which the page does not have", script, m[1])
			}
		}
	}
}
