// Package widget holds the widget's source, and the tests that drive it in a real browser.
package widget

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/browser/browsertest"
	"github.com/spillway-go/spillway/pumpkin"
)

// policy is the strictest that a page with the widget can have. Trusted Types come on top.
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'"

// pages of the test site. %s is where the banner's element goes; the script is beside the document.
var pages = map[string]string{
	"/overlay": page(`lang="en"`, `<script src="/pumpkin.js" async></script>`, ""),
	"/flow":    page(`lang="en"`, `<script src="/pumpkin.js"></script>`, `<pumpkin-banner></pumpkin-banner>`),
	"/rtl": page(`lang="ar" dir="rtl"`, `<script src="/pumpkin.js"></script>`,
		`<pumpkin-banner lang="ar" critical="حرج" major="مشكلة" dismiss="إغلاق"></pumpkin-banner>`),
	"/none":    page(`lang="en"`, `<script src="/pumpkin.js" data-banner="none"></script>`, ""),
	"/twice":   page(`lang="en"`, `<script src="/pumpkin.js"></script><script src="/pumpkin.js" async></script>`, ""),
	"/data":    page(`lang="en"`, `<script src="/pumpkin.js" data-src="/elsewhere/doc.json"></script>`, ""),
	"/virtual": page(`lang="en"`, `<script src="/virtual.js"></script><script src="/pumpkin.js"></script>`, ""),
	"/axe":     page(`lang="en"`, `<script src="/axe.js"></script><script src="/pumpkin.js"></script>`, ""),
	"/axeflow": page(`lang="en"`, `<script src="/axe.js"></script><script src="/pumpkin.js"></script>`, `<pumpkin-banner></pumpkin-banner>`),
}

func page(attributes, head, banner string) string {
	return "<!doctype html><html " + attributes + `><head><meta charset="utf-8"><title>Shop</title>` +
		`<meta name="viewport" content="width=device-width">` + head + `</head><body>` + banner +
		`<main><h1>Shop</h1><p>Things to buy.</p><button id="buy">Buy</button></main></body></html>`
}

// site is a server with a pumpkin and pages that carry its widget.
type site struct {
	*httptest.Server
	pumpkin *pumpkin.Pumpkin

	mu    sync.Mutex
	polls int
}

func newSite(t *testing.T) *site {
	t.Helper()
	p, err := pumpkin.New(pumpkin.Config{PollAfter: 5 * time.Second, PollIdle: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{pumpkin: p}
	mux := http.NewServeMux()
	mux.Handle("/pumpkin.js", p.Public())
	mux.HandleFunc("/pumpkin.json", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.polls++
		s.mu.Unlock()
		p.Public().ServeHTTP(w, r)
	})
	mux.Handle("/elsewhere/doc.json", p.Public())
	for path, text := range pages {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", policy)
			io.WriteString(w, text)
		})
	}
	for path, file := range map[string]string{"/virtual.js": "testdata/virtual.js", "/axe.js": axePath} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.Server.CloseClientConnections()
		s.Server.Close()
		p.Close()
	})
	return s
}

// put raises an item.
func (s *site) put(t *testing.T, id string, e pumpkin.Entry) {
	t.Helper()
	e.Reason = "test"
	if err := s.pumpkin.Put("test", id, e); err != nil {
		t.Fatal(err)
	}
}

// polled is how often the document was asked for.
func (s *site) polled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// notice is an item in English.
func notice(severity pumpkin.Severity, message string) pumpkin.Entry {
	return pumpkin.Entry{Severity: severity, Message: map[string]string{"en": message}}
}

// chromium is the one browser of all tests; each has a tab of its own, and its site an origin of its own.
var chromium browsertest.Chromium

func TestMain(m *testing.M) { os.Exit(chromium.Run(m)) }

// open opens a page in a tab of its own.
func open(t *testing.T, url, excused string) browsertest.Tab {
	t.Helper()
	return chromium.Open(t, url, 1000, 700, excused)
}

// Expressions for what a banner shows.
const (
	banner = `document.querySelector("pumpkin-banner")`
	shown  = `[...document.querySelectorAll("pumpkin-banner")].flatMap(b => [...b.shadowRoot.querySelectorAll("[part]")].map(e => e.querySelector("span").textContent))`
)

// shows is what the banners show, top to bottom.
func shows(tab browsertest.Tab) string {
	tab.Helper()
	return browsertest.Value[string](tab, shown+`.join(" | ")`)
}

// axePath is where npm puts axe-core.
const axePath = "../../.ci/axe/node_modules/axe-core/axe.min.js"

// needsAxe fails a test that cannot check accessibility, and says what to do.
func needsAxe(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(axePath); errors.Is(err, os.ErrNotExist) {
		t.Fatal("axe-core is not installed; make test fetches it where npm is installed (apt-get install -y npm), or run: npm ci --prefix .ci/axe --ignore-scripts")
	}
}
