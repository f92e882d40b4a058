package widget

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser/browsertest"
	"github.com/spillway-go/spillway/pumpkin"
)

func TestBannerShowsWithinOnePollAndGoesAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tab := open(t, s.URL+"/overlay", "")
	tab.Becomes(`window.pumpkin?.state != null`)
	if got := shows(tab); got != "" {
		t.Fatalf("nothing is wrong, but it shows %q", got)
	}
	before := s.polled()
	e := notice(pumpkin.Major, "Search is slow today.")
	e.Message["de"] = "Die Suche ist heute langsam."
	e.URL, e.LinkText = "https://status.example/1", "What we know"
	e.Features = map[string]pumpkin.Feature{"search": {Off: 1}}
	s.put(t, "search", e)
	tab.Becomes(shown + `.length == 1`)
	if n := s.polled() - before; n > 2 { // a poll may have been under way when it was raised
		t.Errorf("it took %d polls", n)
	}
	if got := shows(tab); got != "Search is slow today." {
		t.Errorf("shows %q", got)
	}
	for expression, want := range map[string]string{
		banner + `.shadowRoot.querySelector("a").href`:                        "https://status.example/1",
		banner + `.shadowRoot.querySelector("a").textContent`:                 "What we know",
		banner + `.shadowRoot.querySelector("a").rel`:                         "noopener noreferrer",
		banner + `.shadowRoot.querySelector("b").textContent`:                 "major",
		banner + `.shadowRoot.querySelector("span").lang`:                     "en",
		banner + `.shadowRoot.querySelector("span").dir`:                      "auto",
		banner + `.shadowRoot.querySelector("[part]").parentNode.role`:        "status",
		`String(pumpkin.blocked("search")) + pumpkin.blocked("orders")`:       "truefalse",
		`String(pumpkin.blocked("")) + pumpkin.blocked() + pumpkin.state.rev`: "falsefalse1",
		`document.activeElement.tagName`:                                      "BODY",
	} {
		if got := browsertest.Value[string](tab, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	if _, err := s.pumpkin.Clear("test", "search"); err != nil {
		t.Fatal(err)
	}
	tab.Becomes(shown + `.length == 0 && !pumpkin.blocked("search")`)
}

func TestDismissalLastsUntilTheNoticeIsAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := notice(pumpkin.Minor, "Reports are slow.")
	s.put(t, "reports", e)
	sticky := notice(pumpkin.Major, "This one stays.")
	sticky.Sticky = true
	s.put(t, "stays", sticky)
	tab := open(t, s.URL+"/overlay", "")
	tab.Becomes(shown + `.length == 2`)
	button := banner + `.shadowRoot.querySelectorAll("button")`
	if n := browsertest.Value[int](tab, button+`.length`); n != 1 {
		t.Fatalf("%d buttons for one dismissible notice", n)
	}
	if got := browsertest.Value[string](tab, button+`[0].textContent`); got != "dismiss" {
		t.Errorf("the button is called %q", got)
	}
	browsertest.Value[bool](tab, button+`[0].click(), true`)
	if got := shows(tab); got != "This one stays." {
		t.Fatalf("after dismissing: %q", got)
	}
	tab.Do(chromedp.Reload())
	tab.Becomes(shown + `.length > 0`)
	if got := shows(tab); got != "This one stays." {
		t.Errorf("after a reload: %q", got)
	}
	// A longer TTL is no other notice; other words are.
	before := s.polled()
	s.put(t, "reports", e)
	for s.polled() < before+2 {
		time.Sleep(50 * time.Millisecond)
	}
	if got := shows(tab); got != "This one stays." {
		t.Errorf("after a longer TTL: %q", got)
	}
	s.put(t, "reports", notice(pumpkin.Minor, "Reports are off."))
	tab.Becomes(shown + `.includes("Reports are off.")`)
	// What is dismissed is known to the page and goes for all that is shown of it, but does not bring a feature back.
	s.put(t, "reports", pumpkin.Entry{Severity: pumpkin.Minor, Message: map[string]string{"en": "Gone."}, Features: map[string]pumpkin.Feature{"reports": {Off: 1}}})
	tab.Becomes(shown + `.includes("Gone.")`)
	browsertest.Value[bool](tab, button+`[0].click(), true`)
	if browsertest.Value[bool](tab, `!pumpkin.blocked("reports") || `+shown+`.includes("Gone.")`) {
		t.Error("dismissing the notice has brought the feature back, or did nothing")
	}
}

// Whatever an operator, or whoever has taken an operator's place, writes: it is text, and a link leads to the web.
func TestTextIsInert(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hostile := `<script>window.hit=1</script><img src=x onerror="window.hit=2"><b onclick="window.hit=3">bold</b> javascript:window.hit=4`
	s.put(t, "html", notice(pumpkin.Critical, hostile))
	tab := open(t, s.URL+"/virtual", "")
	browsertest.Value[bool](tab, `new Promise(done => {
		const r = new XMLHttpRequest(); // fetch is the test's own here
		r.onload = async () => { virtual.answer = {status: 200, body: r.responseText}; await virtual.run(10); done(true); };
		r.open("GET", "/pumpkin.json");
		r.send();
	})`)
	if got := shows(tab); got != hostile {
		t.Errorf("shows %q", got)
	}
	// The server refuses such links; a widget must not rely on it.
	for i, url := range []string{"javascript:window.hit=5", " javascript:window.hit=5", "java\nscript:window.hit=5", "JAVASCRIPT:1//https://x", "data:text/html,<script>1</script>",
		"//evil.example", "https:evil", "vbscript:x", "blob:https://x/1"} {
		browsertest.Value[float64](tab, fmt.Sprintf(`virtual.says(%d, {epoch: "Z"}, {url: %s`, i, quote(url))+`, link_text: "<i>here</i>", severity: '"><script>window.hit=6</script>', id: "<b>"}), virtual.step()`)
		if n := browsertest.Value[int](tab, banner+`.shadowRoot.querySelectorAll("a,script,img,i").length`); n != 0 {
			t.Errorf("%q became a link or an element", url)
		}
		if n := browsertest.Value[int](tab, shown+`.length`); n != 1 {
			t.Fatalf("%d notices: %q was not shown at all", n, url)
		}
	}
	browsertest.Value[float64](tab, `virtual.says(1000, {epoch: "Z"}, {url: "HTTPS://ok.example/a", link_text: "<i>here</i>"}), virtual.step()`)
	if got := browsertest.Value[string](tab, banner+`.shadowRoot.querySelector("a").textContent`); got != "<i>here</i>" {
		t.Errorf("the link is called %q", got)
	}
	if browsertest.Value[bool](tab, `"hit" in window`) {
		t.Error("something in the text has run")
	}
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func TestBannerStaysWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, "down", pumpkin.Entry{Severity: pumpkin.Critical, Message: map[string]string{"en": "We are down."}, Features: map[string]pumpkin.Feature{"*": {Off: 1}}})
	tab := open(t, s.URL+"/overlay", "Failed to load resource")
	tab.Becomes(shown + `.length == 1`)
	browsertest.Value[bool](tab, `(() => { const real = fetch; window.failed = 0; window.fetch = (...a) => real(...a).catch(e => { window.failed++; throw e; }); return true; })()`)
	s.CloseClientConnections()
	s.Close()
	tab.Becomes(`window.failed >= 2`)
	if got := shows(tab); got != "We are down." || !browsertest.Value[bool](tab, `pumpkin.blocked("anything")`) {
		t.Errorf("shows %q", got)
	}
}

func TestAuthorsChooseThePlace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, "x", notice(pumpkin.Maintenance, "Back at noon."))
	for _, c := range []struct {
		path, position string
		banners, items int
	}{{"/overlay", "fixed", 1, 1}, {"/flow", "sticky", 1, 1}, {"/none", "", 0, 0}, {"/twice", "fixed", 1, 1}, {"/data", "fixed", 1, 1}} {
		tab := open(t, s.URL+c.path, "")
		tab.Becomes(`window.pumpkin?.state?.active`)
		if n := browsertest.Value[int](tab, `document.querySelectorAll("pumpkin-banner").length`); n != c.banners {
			t.Errorf("%s: %d banners, want %d", c.path, n, c.banners)
		}
		if n := browsertest.Value[int](tab, shown+`.length`); n != c.items {
			t.Errorf("%s: %d notices, want %d", c.path, n, c.items)
		}
		if c.banners > 0 {
			if got := browsertest.Value[string](tab, `getComputedStyle(`+banner+`).position`); got != c.position {
				t.Errorf("%s: position %s, want %s", c.path, got, c.position)
			}
		}
	}
	// One that comes late, as in a page made by a framework, takes over.
	tab := open(t, s.URL+"/overlay", "")
	tab.Becomes(shown + `.length == 1`)
	browsertest.Value[bool](tab, `document.querySelector("main").append(document.createElement("pumpkin-banner")), true`)
	if got := browsertest.Value[string](tab, `[...document.querySelectorAll("pumpkin-banner")].map(b => b.parentNode.tagName).join()`); got != "MAIN" {
		t.Errorf("banners are in %s", got)
	}
	if got := shows(tab); got != "Back at noon." {
		t.Errorf("the late one shows %q", got)
	}
}

// Over the page it shifts nothing; in the page it shifts nothing when it is known from the page before.
func TestBannerShiftsNothingWhereItCan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, "x", notice(pumpkin.Major, "Search is slow today."))
	const shift = `new Promise(done => { let sum = 0; new PerformanceObserver(list => list.getEntries().forEach(e => sum += e.value)).observe({type: "layout-shift", buffered: true});
		requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(sum)))); })`
	tab := open(t, s.URL+"/overlay", "")
	tab.Becomes(shown + `.length == 1`)
	if v := browsertest.Value[float64](tab, shift); v != 0 {
		t.Errorf("over the page: layout shift %v", v)
	}
	tab = open(t, s.URL+"/flow", "")
	tab.Becomes(shown + `.length == 1`)
	if v := browsertest.Value[float64](tab, shift); v == 0 {
		t.Error("the first time in the page: no layout shift, so this test measures nothing")
	}
	tab.Do(chromedp.Reload())
	if got := shows(tab); got != "Search is slow today." {
		t.Errorf("after a reload, before any poll: %q", got)
	}
	if v := browsertest.Value[float64](tab, shift); v != 0 {
		t.Errorf("known from the page before: layout shift %v", v)
	}
}
