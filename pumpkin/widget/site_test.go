// Package widget holds the widget's source, and the tests that drive it in a real browser.
package widget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/examples/demo/browser"
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
var chromium = sync.OnceValues(func() (context.Context, error) {
	tab, end, err := browser.Open(context.Background(), 1000, 700)
	endChromium = end
	return tab, err
})

var endChromium func()

func TestMain(m *testing.M) {
	code := m.Run()
	if endChromium != nil {
		endChromium()
	}
	os.Exit(code)
}

// patience bounds a test in the browser: a machine that is slow must not fail it.
const patience = 3 * time.Minute

// open opens a page in a tab and fails the test at its end if the page wrote anything to the console, an error or a violation
// of its policy, that does not contain the word which excuses it.
func open(t *testing.T, url, excused string) context.Context {
	t.Helper()
	first, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	tab, end := chromedp.NewContext(first)
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1000, 700)); err != nil {
		end()
		t.Fatal(err)
	}
	messages := chromedp.Console(tab)
	var written []string
	read := make(chan struct{})
	go func() {
		defer close(read)
		for m, err := range messages {
			if err != nil {
				return
			}
			if text := fmt.Sprintf("%s %s: %s (%s:%d)", m.Type, m.Source, m.Text, m.URL, m.Line); excused == "" || !strings.Contains(text, excused) {
				written = append(written, text)
			}
		}
	}()
	timed, cancel := context.WithTimeout(tab, patience)
	t.Cleanup(func() {
		_, _ = chromedp.Run(timed, chromedp.Evaluate[int]("1")) // what the page has written arrives before the answer
		cancel()
		end()
		<-read
		for _, line := range written {
			t.Errorf("the page wrote to the console: %s", line)
		}
	})
	do(t, timed, chromedp.Navigate(url))
	return timed
}

func do(t *testing.T, tab context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab, steps...); err != nil {
		t.Fatal(err)
	}
}

// becomes waits until a condition holds in the page.
func becomes(t *testing.T, tab context.Context, condition string) {
	t.Helper()
	_, err := chromedp.Run(tab, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(2*time.Minute), chromedp.WithPollingInterval(50*time.Millisecond)))
	if err != nil {
		t.Fatalf("the page never came to %s: %v", condition, err)
	}
}

// evaluated is the value of an expression in the page, of a promise when it is one.
func evaluated[T any](t *testing.T, tab context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(tab, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// media makes the page see a person's preferences: "prefers-color-scheme", "dark".
func media(features ...string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		var params emulation.SetEmulatedMediaParams
		for i := 0; i < len(features); i += 2 {
			params.Features = append(params.Features, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
		}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, params)
		return err
	})
}

// Expressions for what a banner shows.
const (
	banner = `document.querySelector("pumpkin-banner")`
	shown  = `[...document.querySelectorAll("pumpkin-banner")].flatMap(b => [...b.shadowRoot.querySelectorAll("[part]")].map(e => e.querySelector("span").textContent))`
)

// shows is what the banners show, top to bottom.
func shows(t *testing.T, tab context.Context) string {
	t.Helper()
	return evaluated[string](t, tab, shown+`.join(" | ")`)
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
