package web_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/demo/web"
)

func get(t *testing.T, path string, h http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for name, values := range h {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, r)
	return w
}

func TestEveryFileIsServedUnderThePolicyAndItsOwnType(t *testing.T) {
	paths := web.Paths()
	for _, must := range []string{"/", web.Icon, "/assets/app.js", "/assets/style.css"} {
		if !slices.Contains(paths, must) {
			t.Errorf("%s is not among %v", must, paths)
		}
	}
	for _, path := range paths {
		w := get(t, path, nil)
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: status %d, %d bytes", path, w.Code, w.Body.Len())
		}
		if w.Header().Get("Content-Security-Policy") != web.Policy || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s lacks the policy: %v", path, w.Header())
		}
		if w.Header().Get("Content-Type") == "" {
			t.Errorf("%s has no type", path)
		}
		if again := get(t, path, http.Header{"If-None-Match": {w.Header().Get("ETag")}}); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s asked again: status %d, %d bytes; want 304 and none", path, again.Code, again.Body.Len())
		}
	}
	if w := get(t, "/assets/nothing.js", nil); w.Code != http.StatusNotFound {
		t.Errorf("an unknown file: status %d, want 404", w.Code)
	}
}

func TestThePolicyAllowsOwnFilesOnly(t *testing.T) {
	for _, directive := range strings.Split(web.Policy, "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		want := "'self'"
		switch name {
		case "default-src", "base-uri", "form-action", "frame-ancestors":
			want = "'none'"
		case "img-src":
			want = "'self' data:"
		}
		if sources != want {
			t.Errorf("%s is %q, want %q", name, sources, want)
		}
	}
}

// The browser refuses what the policy forbids, but silently to everybody who does not look at its console. So the files
// themselves must hold nothing of it.
func TestThePageHoldsNothingThatThePolicyForbids(t *testing.T) {
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
			if found := pattern.FindString(get(t, path, nil).Body.String()); found != "" {
				t.Errorf("%s holds %s: %q", path, c.what, found)
			}
		}
	}
}

func TestEveryFileThatThePageNamesIsThere(t *testing.T) {
	page := get(t, "/", nil).Body.String()
	for _, m := range regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		if w := get(t, m[1], nil); w.Code != http.StatusOK {
			t.Errorf("the page names %s: status %d", m[1], w.Code)
		}
	}
	app := get(t, "/assets/app.js", nil).Body.String()
	for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(app, -1) {
		if w := get(t, "/assets/"+m[1], nil); w.Code != http.StatusOK {
			t.Errorf("the script imports %s: status %d", m[1], w.Code)
		}
	}
	for _, m := range regexp.MustCompile(`\$\("([a-z0-9-]+)"\)`).FindAllStringSubmatch(app, -1) {
		if !strings.Contains(page, `id="`+m[1]+`"`) {
			t.Errorf("the script looks for #%s, which the page does not have", m[1])
		}
	}
}
