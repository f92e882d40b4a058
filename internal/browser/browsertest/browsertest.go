// Package browsertest is what tests that drive a page in Chromium have in common.
package browsertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser"
)

// patience bounds a test in the browser: a machine that is slow must not fail it.
const patience = 4 * time.Minute

// Tab is a page in Chromium, and the test that looks at it.
type Tab struct {
	*testing.T
	// Page is what chromedp's functions take.
	Page context.Context
}

// Open opens url in a Chromium of its own, in a window of that size in CSS pixels, and returns the tab, which ends with the test. The
// test fails if the page writes anything to the console, be it an error, a warning or a violation of its own policy, that does not
// contain excused; an empty excused excuses nothing.
func Open(t *testing.T, url string, width, height int64, excused string) Tab {
	t.Helper()
	tab, end, err := browser.Open(context.Background(), width, height)
	if err != nil {
		t.Fatal(err)
	}
	return visit(t, tab, end, url, width, height, excused)
}

// Chromium is one browser for all tests of a package, which may run in parallel: each has a tab of its own. The zero value is ready,
// and starts nothing before it is needed.
type Chromium struct {
	start sync.Once
	first context.Context // the tab that keeps the browser
	end   func()
	err   error
}

// Open is as the function Open, in a new tab of c.
func (c *Chromium) Open(t *testing.T, url string, width, height int64, excused string) Tab {
	t.Helper()
	c.start.Do(func() { c.first, c.end, c.err = browser.Open(context.Background(), width, height) })
	if c.err != nil {
		t.Fatal(c.err)
	}
	tab, end := chromedp.NewContext(c.first)
	return visit(t, tab, end, url, width, height, excused)
}

// Run runs the tests of a package and then ends c; it is for TestMain.
func (c *Chromium) Run(m *testing.M) (code int) {
	code = m.Run()
	if c.end != nil {
		c.end()
	}
	return code
}

// visit reads the console of a tab from before the page is there until the test ends.
func visit(t *testing.T, tab context.Context, end func(), url string, width, height int64, excused string) Tab {
	t.Helper()
	messages := chromedp.Console(tab)
	var written []string
	read := make(chan struct{})
	go func() {
		defer close(read)
		for m, err := range messages {
			if err != nil {
				return
			}
			if line := fmt.Sprintf("%s %s: %s (%s:%d)", m.Type, m.Source, m.Text, m.URL, m.Line); excused == "" || !strings.Contains(line, excused) {
				written = append(written, line)
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
	v := Tab{t, timed}
	v.Do(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	return v
}

// Do takes steps in the page.
func (v Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	v.Helper()
	if err := chromedp.Do(v.Page, steps...); err != nil {
		v.Fatal(err)
	}
}

// Becomes waits until an expression is true in the page.
func (v Tab) Becomes(condition string) {
	v.Helper()
	_, err := chromedp.Run(v.Page, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(2*time.Minute), chromedp.WithPollingInterval(50*time.Millisecond)))
	if err != nil {
		text, _ := chromedp.Run(v.Page, chromedp.Evaluate[string](`document.body.innerText`))
		v.Fatalf("the page never came to %s: %v\n%s", condition, err, text)
	}
}

// Value is what an expression is in the page, of a promise what it comes to.
func Value[T any](v Tab, expression string) T {
	v.Helper()
	value, err := chromedp.Run(v.Page, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		v.Fatalf("%s: %v", expression, err)
	}
	return value
}
