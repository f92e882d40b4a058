// Package page holds the page for the person on call, and the tests that drive it in a real browser.
package page

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/examples/demo/browser"
	"github.com/spillway-go/spillway/pumpkin"
)

const token = "correct-horse-battery-staple-0123456789"

// axePath is where npm puts axe-core.
const axePath = "../../.ci/axe/node_modules/axe-core/axe.min.js"

// patience bounds a test in the browser: a machine that is slow must not fail it.
const patience = 4 * time.Minute

var endChromium func()

// chromium is the one browser of all tests; each has a tab of its own, and its server an origin of its own.
var chromium = sync.OnceValues(func() (context.Context, error) {
	tab, end, err := browser.Open(context.Background(), 1000, 900)
	endChromium = end
	return tab, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if endChromium != nil {
		endChromium()
	}
	os.Exit(code)
}

// desk is a page in a tab, and the pumpkin behind it.
type desk struct {
	*testing.T
	tab     context.Context
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
	first, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	tab, end := chromedp.NewContext(first)
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
	d := desk{t, timed, server.URL, p}
	d.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(server.URL+"/"))
	return d
}

func (d desk) do(steps ...chromedp.Action[chromedp.Void]) {
	d.Helper()
	if err := chromedp.Do(d.tab, steps...); err != nil {
		d.Fatal(err)
	}
}

// becomes waits until a condition holds in the page.
func (d desk) becomes(condition string) {
	d.Helper()
	_, err := chromedp.Run(d.tab, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(2*time.Minute), chromedp.WithPollingInterval(50*time.Millisecond)))
	if err != nil {
		text, _ := chromedp.Run(d.tab, chromedp.Evaluate[string](`document.body.innerText`))
		d.Fatalf("the page never came to %s: %v\n%s", condition, err, text)
	}
}

func value[T any](d desk, expression string) T {
	d.Helper()
	v, err := chromedp.Run(d.tab, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		d.Fatalf("%s: %v", expression, err)
	}
	return v
}

// press is what a keyboard does, and nothing that a mouse would be needed for.
func (d desk) press(keys ...string) {
	d.Helper()
	for _, k := range keys {
		d.do(chromedp.KeyEvent(k))
	}
}

func (d desk) comeIn() {
	d.Helper()
	d.do(chromedp.Focus(chromedp.CSS("#token")))
	d.press(token, "\r")
	d.becomes(`!document.querySelector("#inside").hidden && document.activeElement.id === "now-title"`)
}

const focused = `(document.activeElement.id || document.activeElement.dataset.key || document.activeElement.tagName)`

// tabTo presses the tabulator until an element has the focus.
func (d desk) tabTo(name string) {
	d.Helper()
	for range 60 {
		d.press("\t")
		if value[string](d, focused) == name {
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
	if got := value[string](d, `document.querySelector("#summary").textContent`); got != "nothing in force, you are ada" {
		t.Errorf("summary %q", got)
	}
	d.tabTo("template")
	d.press("search-off")
	d.becomes(`document.querySelector("#id").value === "search-off"`)
	if got := value[string](d, `[...document.querySelectorAll("#texts textarea")].map(t => t.lang + "=" + t.value).join()+document.querySelector("#features").value+document.querySelector("#ttl").value`); got !=
		"en=Search is off for a while.,de=Die Suche ist eine Weile aus.reports 25%, search30m" {
		t.Errorf("the prepared text fills in %q", got)
	}
	d.tabTo("reason")
	d.press("index rebuild", "\r")
	d.becomes(said + `.startsWith("People read search-off until ")`)
	doc := d.pumpkin.Document()
	if len(doc.Items) != 1 || doc.Items[0].Message["de"] != "Die Suche ist eine Weile aus." || doc.Items[0].Features["reports"].Off != 0.25 {
		t.Fatalf("document %+v", doc)
	}
	before := d.pumpkin.State().Items[0].ExpiresAt
	d.becomes(`document.querySelectorAll("#items li").length === 1`)

	value[bool](d, `document.querySelector("#now-title").focus(), true`)
	d.tabTo("extend search-off")
	d.press(" ")
	d.becomes(said + `.startsWith("search-off stays until ")`)
	after := d.pumpkin.State()
	if !after.Items[0].ExpiresAt.After(before.Add(20*time.Minute)) || after.Rev != doc.Rev || after.Items[0].Reason != "index rebuild" {
		t.Errorf("extended: %+v, before until %v", after, before)
	}
	d.becomes(focused + ` === "extend search-off"`) // the list was drawn anew under the focus

	d.press("\t", "\t")
	d.becomes(focused + ` === "clear search-off"`)
	d.press(" ")
	if len(d.pumpkin.Document().Items) != 1 {
		t.Error("one press clears: a slip would do it")
	}
	d.press(" ")
	d.becomes(`document.querySelectorAll("#items li").length === 0`)
	if len(d.pumpkin.Document().Items) != 0 {
		t.Error("not cleared")
	}
	d.becomes(`document.querySelectorAll("#audit tr").length === 3`)
	if got := value[string](d, `[...document.querySelectorAll("#audit tr")].map(r => r.cells[1].textContent + " " + r.cells[2].textContent + " " + r.cells[3].textContent).join("|")`); got !=
		"ada delete search-off index rebuild|ada put search-off index rebuild|ada put search-off index rebuild" {
		t.Errorf("who did what: %s", got)
	}
}

func TestTheBigSwitchOnAPhone(t *testing.T) {
	t.Parallel()
	d := open(t, 360, 740, "")
	d.comeIn()
	d.do(chromedp.SetValue(chromedp.CSS("#mode-reason"), "everything burns"), chromedp.Click(chromedp.CSS("#mode button")))
	d.becomes(`document.querySelector("#mode-state").textContent.startsWith("On: site-down, until ")`)
	if _, _, off := d.pumpkin.FeatureOff("anything", "c"); !off {
		t.Error("not everything is off")
	}
	if overflow := value[int](d, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); overflow > 0 {
		t.Errorf("the page is %d px wider than the phone", overflow)
	}
	if small := value[string](d, `[...document.querySelectorAll("button, input, select, textarea, summary")].filter(e => { const r = (e.closest("label.tick") ?? e).getBoundingClientRect(); return r.width && (r.width < 24 || r.height < 43) }).map(e => e.id || e.textContent).join()`); small != "" {
		t.Errorf("too small for a finger: %s", small)
	}
	d.do(chromedp.Click(chromedp.CSS("#mode-off")))
	d.becomes(`document.querySelector("#mode-state").textContent === "Off."`)
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
	d.becomes(`document.querySelectorAll("#items li").length === 1`) // found by looking again, without a reload
	if got := value[string](d, `document.querySelector("#items .words").textContent + document.querySelectorAll("#items img, #items script").length + document.title`); got != evil+"0Pumpkin" {
		t.Errorf("shown as %s", got)
	}
	d.do(chromedp.SetValue(chromedp.CSS("#id"), "all"), chromedp.SetValue(chromedp.CSS("#reason"), "r"),
		chromedp.SetValue(chromedp.CSS("#text-en"), "Everything is off."))
	d.do(chromedp.Focus(chromedp.CSS("#features")))
	d.press("*", "\r")
	d.becomes(`document.querySelector("#wrong").textContent.includes("switches everything off")`)
	if len(d.pumpkin.Document().Items) != 1 {
		t.Fatal("it was done without the tick")
	}
	d.press(" ") // the tick has the focus
	d.do(chromedp.Click(chromedp.CSS("#raise .buttons button")))
	d.becomes(said + `.startsWith("People read all")`)
	d.do(chromedp.SetValue(chromedp.CSS("#url"), "https://user:word@status.example/"), chromedp.Click(chromedp.CSS("#preview")))
	d.becomes(`document.querySelector("#wrong").textContent.startsWith("url: must be an absolute")`)
	d.do(chromedp.SetValue(chromedp.CSS("#url"), "https://status.example/"), chromedp.Click(chromedp.CSS("#preview")))
	d.becomes(`document.querySelector("#document").textContent.includes("https://status.example/")`)
	if strings.Contains(string(fmt.Sprint(d.pumpkin.Document())), "status.example") {
		t.Error("the preview was put in force")
	}
}

func TestTheTokenIsAskedForAndForgotten(t *testing.T) {
	t.Parallel()
	d := open(t, 1000, 900, "401")
	d.do(chromedp.Focus(chromedp.CSS("#token")))
	d.press("wrong", "\r")
	d.becomes(`document.querySelector("#wrong").textContent === "That token is not known here."`)
	if got := value[string](d, focused); got != "token" {
		t.Errorf("after a wrong token the focus is on %s", got)
	}
	d.comeIn()
	if got := value[string](d, `sessionStorage.length + "," + localStorage.length + "," + document.cookie`); got != "1,0," {
		t.Errorf("kept: %s", got)
	}
	d.do(chromedp.Reload())
	d.becomes(`!document.querySelector("#inside").hidden`)
	d.do(chromedp.Click(chromedp.CSS("#leave")))
	d.becomes(`document.querySelector("#inside").hidden`)
	if got := value[int](d, `sessionStorage.length`); got != 0 {
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
			d.do(browser.Scheme(scheme))
			got := value[string](d, `axe.run().then(r => r.passes.length + " " + r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).join(" ")).join("; "))`)
			var passes int
			if _, err := fmt.Sscan(got, &passes); err != nil || passes < 10 || !strings.HasSuffix(got, " ") {
				t.Errorf("%s, %s: axe says %s", where, scheme, got)
			}
		}
	}
	value[bool](d, string(axe)+";true")
	check("before the token")
	d.comeIn()
	d.becomes(`document.querySelectorAll("#items li").length === 3 && document.querySelectorAll("#audit tr").length === 3`)
	value[bool](d, `document.querySelector("#automation").open = true`)
	check("inside")
	value[bool](d, `document.querySelector("#wrong").textContent = "Refused.", document.querySelector("#said").textContent = "Done.", true`)
	check("with messages")
	if dir := os.Getenv("PAGE_SHOTS"); dir != "" { // to be looked at
		for _, scheme := range []string{"light", "dark"} {
			for name, size := range map[string][2]int64{"phone": {360, 740}, "desktop": {1000, 900}} {
				d.do(browser.Scheme(scheme), chromedp.EmulateViewport(size[0], size[1]))
				png, err := chromedp.Run(d.tab, chromedp.FullScreenshot(100))
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
