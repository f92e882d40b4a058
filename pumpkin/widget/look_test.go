package widget

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser"
	"github.com/spillway-go/spillway/internal/browser/browsertest"
	"github.com/spillway-go/spillway/pumpkin"
)

// violations runs axe-core over the page, the banner included, and lists what it objects to and what it cannot tell. It does
// not see which colours a person forces, so contrast is not its business then.
const violations = `axe.run(document, matchMedia("(forced-colors: active)").matches ? {rules: {"color-contrast": {enabled: false}}} : {}).then(r => [...r.violations, ...r.incomplete].map(v => v.id + " (" + v.impact + "): " +
	v.nodes.map(n => n.target.flat().join(" ") + ": " + (n.failureSummary ?? "")).join("; ")).join("\n") + (r.passes.length < 10 ? "axe checked only " + r.passes.length + " rules" : ""))`

// full raises one item of each severity.
func full(t *testing.T, s *site) {
	t.Helper()
	e := notice(pumpkin.Major, "Search is slow today: results may be up to an hour old.")
	e.URL, e.LinkText = "https://status.example/search", "What we know"
	s.put(t, "search", e)
	s.put(t, "reports", notice(pumpkin.Minor, "Reports are made overnight."))
	s.put(t, "noon", notice(pumpkin.Maintenance, "Invoices are away from 12:00 to 12:30 UTC."))
}

func critical(t *testing.T, s *site) {
	t.Helper()
	e := notice(pumpkin.Critical, "Payments fail. Orders are kept and nothing is charged twice.")
	e.URL, e.Sticky = "https://status.example/payments", true
	s.put(t, "pay", e)
}

func TestAxeReportsNothing(t *testing.T) {
	needsAxe(t)
	t.Parallel()
	s := newSite(t)
	full(t, s)
	for _, state := range []string{"three severities", "critical too"} {
		for _, path := range []string{"/axe", "/axeflow"} {
			for _, look := range [][]string{{"prefers-color-scheme", "light"}, {"prefers-color-scheme", "dark"}, {"forced-colors", "active"}} {
				tab := open(t, s.URL+path, "")
				tab.Do(browser.Media(look...))
				want := map[string]string{"three severities": "3", "critical too": "4"}[state]
				tab.Becomes(shown + `.length == ` + want)
				if got := browsertest.Value[string](tab, violations); got != "" {
					t.Errorf("%s, %s %v: %s", state, path, look, got)
				}
			}
		}
		critical(t, s)
	}
}

// The control: axe looks into the banner, and objects to what is wrong there.
func TestAxeCanObject(t *testing.T) {
	needsAxe(t)
	t.Parallel()
	s := newSite(t)
	full(t, s)
	tab := open(t, s.URL+"/axe", "")
	tab.Becomes(shown + `.length == 3`)
	browsertest.Value[bool](tab, `(() => { const b = `+banner+`.shadowRoot; b.querySelector("button").textContent = "";
		b.querySelector("span").style.color = "#fff8"; return true; })()`)
	if got := browsertest.Value[string](tab, violations); got == "" {
		t.Error("axe sees neither a button without a name nor pale text")
	}
}

// Colours are not all: the severity is a word, and targets are large enough for a finger.
func TestBannerCanBeReadAndPressed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	full(t, s)
	critical(t, s)
	tab := open(t, s.URL+"/overlay", "")
	tab.Becomes(shown + `.length == 4`)
	if got := browsertest.Value[string](tab, `[...`+banner+`.shadowRoot.querySelectorAll("b")].map(b => b.textContent).join()`); got != "critical,major,maintenance,minor" {
		t.Errorf("severities are called %q", got)
	}
	if got := browsertest.Value[float64](tab, `Math.min(...[...`+banner+`.shadowRoot.querySelectorAll("button")].map(b => b.getBoundingClientRect()).flatMap(r => [r.width, r.height]))`); got < 24 {
		t.Errorf("a button is %v pixels small, 24 are needed", got)
	}
	if got := browsertest.Value[string](tab, `[...`+banner+`.shadowRoot.querySelectorAll("*")].map(e => getComputedStyle(e)).filter(s => s.animationName != "none" || s.transitionDuration != "0s").length + ""`); got != "0" {
		t.Errorf("%s elements move", got)
	}
	tab.Do(chromedp.EmulateViewport(320, 640)) // a phone, and a page at 400 %
	if browsertest.Value[bool](tab, `document.documentElement.scrollWidth > 320 || `+banner+`.scrollWidth > 320 || `+banner+`.getBoundingClientRect().height > 320`) {
		t.Error("on a narrow screen the banner is too wide, or hides more than half of the page")
	}
	tab.Do(chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"))
	if got := browsertest.Value[string](tab, `document.activeElement.shadowRoot?.activeElement?.tagName ?? document.activeElement.tagName`); got != "A" && got != "BUTTON" {
		t.Errorf("the tab key reaches %s", got)
	}
}

// Pictures to look at: go test ./pumpkin/widget -run Pictures, with PUMPKIN_PICTURES naming a folder. Without it they are
// taken and thrown away, which still shows that the pages can be made.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("PUMPKIN_PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	s := newSite(t)
	full(t, s)
	arabic := newSite(t)
	e := notice(pumpkin.Critical, "Payments fail.")
	e.Message["ar"], e.URL = "تعذّر الدفع حاليًا. الطلبات محفوظة.", "https://status.example/payments"
	arabic.put(t, "pay", e)
	f := notice(pumpkin.Major, "Search is slow today.") // not in Arabic: an English line in an Arabic page
	arabic.put(t, "search", f)
	for _, c := range []struct {
		name, url string
		items     string
		look      []string
		width     int64
	}{
		{"light", s.URL + "/overlay", "3", []string{"prefers-color-scheme", "light"}, 1000},
		{"dark", s.URL + "/overlay", "3", []string{"prefers-color-scheme", "dark"}, 1000},
		{"flow", s.URL + "/flow", "3", []string{"prefers-color-scheme", "light"}, 1000},
		{"critical", s.URL + "/overlay", "4", []string{"prefers-color-scheme", "light"}, 1000},
		{"critical-dark", s.URL + "/flow", "4", []string{"prefers-color-scheme", "dark"}, 1000},
		{"forced", s.URL + "/overlay", "4", []string{"forced-colors", "active"}, 1000},
		{"phone", s.URL + "/overlay", "4", []string{"prefers-color-scheme", "light"}, 320},
		{"rtl", arabic.URL + "/rtl", "2", []string{"prefers-color-scheme", "light"}, 1000},
	} {
		if c.items == "4" && c.name == "critical" {
			critical(t, s)
		}
		tab := open(t, c.url, "")
		tab.Do(browser.Media(c.look...), chromedp.EmulateViewport(c.width, 420))
		tab.Becomes(shown + `.length == ` + c.items)
		png, err := chromedp.Run(tab.Page, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
