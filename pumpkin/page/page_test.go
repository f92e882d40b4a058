// Package page holds the page for the person on call, and the tests that drive it in a real browser.
package page

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser"
	"github.com/spillway-go/spillway/internal/browser/browsertest"
	"github.com/spillway-go/spillway/pumpkin"
)

const token = "correct-horse-battery-staple-0123456789"

// axePath is where npm puts axe-core.
const axePath = "../../.ci/axe/node_modules/axe-core/axe.min.js"

// chromium is the one browser of all tests; each has a tab of its own, and its server an origin of its own.
var chromium browsertest.Chromium

func TestMain(m *testing.M) { os.Exit(chromium.Run(m)) }

// desk is a page in a tab, and the pumpkin behind it.
type desk struct {
	browsertest.Tab
	url     string
	pumpkin *pumpkin.Pumpkin
}

// open opens the page in a window of that size. The test fails if the page writes anything to the console that is not excused.
func open(t *testing.T, width, height int64, excused string) desk {
	t.Helper()
	ada, err := pumpkin.NewToken("ada", token)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pumpkin.New(pumpkin.Config{
		Tokens: []pumpkin.Token{ada}, Logger: slog.New(slog.DiscardHandler),
		Templates: map[string]pumpkin.Entry{"search-off": {
			Severity: pumpkin.Major, Message: map[string]string{"en": "Search is off for a while.", "de": "Die Suche ist eine Weile aus."},
			Features: map[string]pumpkin.Feature{"search": {Off: 1}, "reports": {Off: 0.25}}, TTL: 30 * time.Minute,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p.Admin())
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		p.Close()
	})
	return desk{chromium.Open(t, server.URL+"/", width, height, excused), server.URL, p}
}

// press is what a keyboard does, and nothing that a mouse would be needed for.
func (d desk) press(keys ...string) {
	d.Helper()
	for _, k := range keys {
		d.Do(chromedp.KeyEvent(k))
	}
}

func (d desk) comeIn() {
	d.Helper()
	d.Do(chromedp.Focus(chromedp.CSS("#token")))
	d.press(token, "\r")
	d.Becomes(`!document.querySelector("#inside").hidden && document.activeElement.id === "now-title"`)
}

const focused = `(document.activeElement.id || document.activeElement.dataset.key || document.activeElement.tagName)`

// tabTo presses the tabulator until an element has the focus.
func (d desk) tabTo(name string) {
	d.Helper()
	for range 60 {
		d.press("\t")
		if browsertest.Value[string](d.Tab, focused) == name {
			return
		}
	}
	d.Fatalf("the tabulator never comes to %s", name)
}

const said = `document.querySelector("#said").textContent`

func TestAnItemIsRaisedExtendedAndClearedByKeyboardAlone(t *testing.T) {
	t.Parallel()
	d := open(t, 1000, 900, "")
	d.comeIn()
	if got := browsertest.Value[string](d.Tab, `document.querySelector("#summary").textContent`); got != "nothing in force, you are ada" {
		t.Errorf("summary %q", got)
	}
	d.tabTo("template")
	d.press("search-off")
	d.Becomes(`document.querySelector("#id").value === "search-off"`)
	if got := browsertest.Value[string](d.Tab, `[...document.querySelectorAll("#texts textarea")].map(t => t.lang + "=" + t.value).join()+document.querySelector("#features").value+document.querySelector("#ttl").value`); got !=
		"en=Search is off for a while.,de=Die Suche ist eine Weile aus.reports 25%, search30m" {
		t.Errorf("the prepared text fills in %q", got)
	}
	d.tabTo("reason")
	d.press("index rebuild", "\r")
	d.Becomes(said + `.startsWith("People read search-off until ")`)
	doc := d.pumpkin.Document()
	if len(doc.Items) != 1 || doc.Items[0].Message["de"] != "Die Suche ist eine Weile aus." || doc.Items[0].Features["reports"].Off != 0.25 {
		t.Fatalf("document %+v", doc)
	}
	before := d.pumpkin.State().Items[0].ExpiresAt
	d.Becomes(`document.querySelectorAll("#items li").length === 1`)

	browsertest.Value[bool](d.Tab, `document.querySelector("#now-title").focus(), true`)
	d.tabTo("extend search-off")
	d.press(" ")
	d.Becomes(said + `.startsWith("search-off stays until ")`)
	after := d.pumpkin.State()
	if !after.Items[0].ExpiresAt.After(before.Add(20*time.Minute)) || after.Rev != doc.Rev || after.Items[0].Reason != "index rebuild" {
		t.Errorf("extended: %+v, before until %v", after, before)
	}
	d.Becomes(focused + ` === "extend search-off"`) // the list was drawn anew under the focus

	d.press("\t", "\t")
	d.Becomes(focused + ` === "clear search-off"`)
	d.press(" ")
	if len(d.pumpkin.Document().Items) != 1 {
		t.Error("one press clears: a slip would do it")
	}
	d.press(" ")
	d.Becomes(`document.querySelectorAll("#items li").length === 0`)
	if len(d.pumpkin.Document().Items) != 0 {
		t.Error("not cleared")
	}
	d.Becomes(`document.querySelectorAll("#audit tr").length === 3`)
	if got := browsertest.Value[string](d.Tab, `[...document.querySelectorAll("#audit tr")].map(r => r.cells[1].textContent + " " + r.cells[2].textContent + " " + r.cells[3].textContent).join("|")`); got !=
		"ada delete search-off index rebuild|ada put search-off index rebuild|ada put search-off index rebuild" {
		t.Errorf("who did what: %s", got)
	}
}

func TestTheBigSwitchOnAPhone(t *testing.T) {
	t.Parallel()
	d := open(t, 360, 740, "")
	d.comeIn()
	d.Do(chromedp.SetValue(chromedp.CSS("#mode-reason"), "everything burns"), chromedp.Click(chromedp.CSS("#mode button")))
	d.Becomes(`document.querySelector("#mode-state").textContent.startsWith("On: site-down, until ")`)
	if _, _, off := d.pumpkin.FeatureOff("anything", "c"); !off {
		t.Error("not everything is off")
	}
	if overflow := browsertest.Value[int](d.Tab, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); overflow > 0 {
		t.Errorf("the page is %d px wider than the phone", overflow)
	}
	if small := browsertest.Value[string](d.Tab, `[...document.querySelectorAll("button, input, select, textarea, summary")].filter(e => { const r = (e.closest("label.tick") ?? e).getBoundingClientRect(); return r.width && (r.width < 24 || r.height < 43) }).map(e => e.id || e.textContent).join()`); small != "" {
		t.Errorf("too small for a finger: %s", small)
	}
	d.Do(chromedp.Click(chromedp.CSS("#mode-off")))
	d.Becomes(`document.querySelector("#mode-state").textContent === "Off."`)
	if _, _, off := d.pumpkin.FeatureOff("anything", "c"); off {
		t.Error("still off")
	}
}

func TestWhatIsWrittenIsTextAndWhatIsRefusedIsSaid(t *testing.T) {
	t.Parallel()
	d := open(t, 1000, 900, "422")
	d.comeIn()
	evil := `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
	e := pumpkin.Entry{Severity: pumpkin.Minor, Message: map[string]string{"en": evil}, Reason: evil}
	if err := d.pumpkin.Put("ada", "evil", e); err != nil {
		t.Fatal(err)
	}
	d.Becomes(`document.querySelectorAll("#items li").length === 1`) // found by looking again, without a reload
	if got := browsertest.Value[string](d.Tab, `document.querySelector("#items .words").textContent + document.querySelectorAll("#items img, #items script").length + document.title`); got != evil+"0Pumpkin" {
		t.Errorf("shown as %s", got)
	}
	d.Do(chromedp.SetValue(chromedp.CSS("#id"), "all"), chromedp.SetValue(chromedp.CSS("#reason"), "r"),
		chromedp.SetValue(chromedp.CSS("#text-en"), "Everything is off."))
	d.Do(chromedp.Focus(chromedp.CSS("#features")))
	d.press("*", "\r")
	d.Becomes(`document.querySelector("#wrong").textContent.includes("switches everything off")`)
	if len(d.pumpkin.Document().Items) != 1 {
		t.Fatal("it was done without the tick")
	}
	d.press(" ") // the tick has the focus
	d.Do(chromedp.Click(chromedp.CSS("#raise .buttons button")))
	d.Becomes(said + `.startsWith("People read all")`)
	d.Do(chromedp.SetValue(chromedp.CSS("#url"), "https://user:word@status.example/"), chromedp.Click(chromedp.CSS("#preview")))
	d.Becomes(`document.querySelector("#wrong").textContent.startsWith("url: must be an absolute")`)
	d.Do(chromedp.SetValue(chromedp.CSS("#url"), "https://status.example/"), chromedp.Click(chromedp.CSS("#preview")))
	d.Becomes(`document.querySelector("#document").textContent.includes("https://status.example/")`)
	if strings.Contains(string(fmt.Sprint(d.pumpkin.Document())), "status.example") {
		t.Error("the preview was put in force")
	}
}

func TestTheTokenIsAskedForAndForgotten(t *testing.T) {
	t.Parallel()
	d := open(t, 1000, 900, "401")
	d.Do(chromedp.Focus(chromedp.CSS("#token")))
	d.press("wrong", "\r")
	d.Becomes(`document.querySelector("#wrong").textContent === "That token is not known here."`)
	if got := browsertest.Value[string](d.Tab, focused); got != "token" {
		t.Errorf("after a wrong token the focus is on %s", got)
	}
	d.comeIn()
	if got := browsertest.Value[string](d.Tab, `sessionStorage.length + "," + localStorage.length + "," + document.cookie`); got != "1,0," {
		t.Errorf("kept: %s", got)
	}
	d.Do(chromedp.Reload())
	d.Becomes(`!document.querySelector("#inside").hidden`)
	d.Do(chromedp.Click(chromedp.CSS("#leave")))
	d.Becomes(`document.querySelector("#inside").hidden`)
	if got := browsertest.Value[int](d.Tab, `sessionStorage.length`); got != 0 {
		t.Errorf("%d things are kept after leaving", got)
	}
}

func TestAxeFindsNothingToObjectTo(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(axePath)
	if err != nil {
		t.Fatal("axe-core is not installed; make test fetches it where npm is installed (apt-get install -y npm), or run: npm ci --prefix .ci/axe --ignore-scripts")
	}
	d := open(t, 360, 740, "")
	for i, severity := range []pumpkin.Severity{pumpkin.Minor, pumpkin.Major, pumpkin.Critical} {
		e := pumpkin.Entry{Severity: severity, Message: map[string]string{"en": "Some things are slow."}, Reason: "test",
			Features: map[string]pumpkin.Feature{"search": {Off: 0.5}}, StartsAt: time.Now().Add(time.Duration(i-1) * time.Minute)}
		if err := d.pumpkin.Put("bob", string(severity), e); err != nil {
			t.Fatal(err)
		}
	}
	check := func(where string) {
		t.Helper()
		for _, scheme := range []string{"light", "dark"} {
			d.Do(browser.Media("prefers-color-scheme", scheme))
			got := browsertest.Value[string](d.Tab, `axe.run().then(r => r.passes.length + " " + r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).join(" ")).join("; "))`)
			var passes int
			if _, err := fmt.Sscan(got, &passes); err != nil || passes < 10 || !strings.HasSuffix(got, " ") {
				t.Errorf("%s, %s: axe says %s", where, scheme, got)
			}
		}
	}
	browsertest.Value[bool](d.Tab, string(axe)+";true")
	check("before the token")
	d.comeIn()
	d.Becomes(`document.querySelectorAll("#items li").length === 3 && document.querySelectorAll("#audit tr").length === 3`)
	browsertest.Value[bool](d.Tab, `document.querySelector("#automation").open = true`)
	check("inside")
	browsertest.Value[bool](d.Tab, `document.querySelector("#wrong").textContent = "Refused.", document.querySelector("#said").textContent = "Done.", true`)
	check("with messages")
	if dir := os.Getenv("PAGE_SHOTS"); dir != "" { // to be looked at
		for _, scheme := range []string{"light", "dark"} {
			for name, size := range map[string][2]int64{"phone": {360, 740}, "desktop": {1000, 900}} {
				d.Do(browser.Media("prefers-color-scheme", scheme), chromedp.EmulateViewport(size[0], size[1]))
				png, err := chromedp.Run(d.Page, chromedp.FullScreenshot(100))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(dir+"/"+name+"-"+scheme+".png", png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
