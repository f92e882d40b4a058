package widget

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser/browsertest"
)

// The widget waits exactly as the Go package's Schedule does: both are held against the same table.
func TestWidgetKeepsToTheScheduleTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../testdata/schedule.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name       string  `json:"name"`
		PollAfter  int     `json:"poll_after"`
		Failures   int     `json:"failures"`
		RetryAfter int     `json:"retry_after"`
		U          float64 `json:"u"`
		Wait       float64 `json:"wait"`
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 20 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	tab := open(t, newSite(t).URL+"/virtual", "")
	for i, c := range cases {
		wait := browsertest.Value[float64](tab, fmt.Sprintf(`(async () => {
			virtual.u = %v;
			virtual.says(%d, {poll_after: %d});
			let wait = await virtual.step();
			for (let n = 1; n <= %d; n++) {
				virtual.fails(503, n == %[4]d && %[5]d ? {"Retry-After": "%[5]d"} : {});
				wait = await virtual.step();
			}
			return wait;
		})()`, c.U, i, c.PollAfter, c.Failures, c.RetryAfter))
		if math.Abs(wait-c.Wait) > 1e-6 {
			t.Errorf("%s: waits %v s, want %v", c.Name, wait, c.Wait)
		}
	}
}

func TestWidgetBeginsWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	tab := open(t, newSite(t).URL+"/virtual", "")
	if wait := browsertest.Value[float64](tab, `virtual.wait()`); math.Abs(wait-2.5) > 1e-6 {
		t.Errorf("half of the way: first poll after %v s, want 2.5", wait)
	}
	browsertest.Value[float64](tab, `virtual.says(1), virtual.step()`)
	for expression, want := range map[string]string{
		`virtual.asked.options.cache`:              "no-cache",
		`virtual.asked.options.credentials`:        "omit",
		`virtual.asked.options.signal + ""`:        "[object AbortSignal]",
		`typeof virtual.asked.options.headers`:     "undefined",
		`new URL(virtual.asked.src).pathname`:      "/pumpkin.json",
		`virtual.polls.length + virtual.wait()+""`: "16",
	} {
		if got := browsertest.Value[string](tab, expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
}

// A tab that nobody sees asks nothing. One that is seen again asks after at most 2 s, but not more often than poll_after, nor
// while it was told to stay away.
func TestHiddenTabsDoNotPoll(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tab := open(t, s.URL+"/virtual", "")
	polls := func(until float64) int {
		t.Helper()
		return len(browsertest.Value[[]float64](tab, fmt.Sprintf(`virtual.run(%v)`, until)))
	}
	browsertest.Value[bool](tab, `virtual.says(1), virtual.see(true), true`)
	if n := polls(1000); n != 0 {
		t.Fatalf("%d polls of a tab that was never seen", n)
	}
	browsertest.Value[bool](tab, `virtual.see(false), true`)
	if n := polls(1000.99); n != 0 {
		t.Errorf("asked at once")
	}
	if n := polls(1001); n != 1 {
		t.Fatalf("%d polls 1 s after it was seen, want 1", n)
	}
	// Away and back within poll_after: the poll is due at 15 s after the last, whatever happens in between.
	browsertest.Value[bool](tab, `virtual.see(true), virtual.see(false), virtual.see(true), virtual.see(false), true`)
	if n := polls(1015.9); n != 1 {
		t.Errorf("%d polls within poll_after, want 1", n)
	}
	if n := polls(1016.1); n != 2 {
		t.Errorf("%d polls after poll_after, want 2", n)
	}
	// Told to stay away for 100 s.
	browsertest.Value[bool](tab, `virtual.fails(503, {"Retry-After": "100"}), true`)
	if n := polls(1032); n != 3 {
		t.Fatalf("%d polls, want 3", n)
	}
	browsertest.Value[bool](tab, `virtual.see(true), virtual.see(false), true`)
	if n := polls(1130); n != 3 {
		t.Errorf("%d polls although told to stay away", n)
	}
	// Hidden while a poll is under way: its end starts nothing, and being seen meanwhile starts no second one.
	browsertest.Value[bool](tab, `virtual.says(2), virtual.hang = new Promise(go => virtual.go = go), true`)
	if n := polls(1140); n != 4 {
		t.Fatalf("%d polls, want 4", n)
	}
	browsertest.Value[bool](tab, `virtual.see(true), virtual.see(false), true`)
	if n := polls(1170); n != 4 {
		t.Errorf("%d polls: a second one while the first is under way", n)
	}
	browsertest.Value[bool](tab, `virtual.see(true), virtual.hang = null, virtual.go(), true`)
	if n := polls(5000); n != 4 {
		t.Errorf("%d polls: the end of one started another while hidden", n)
	}
}

func TestWidgetNeverGoesBack(t *testing.T) {
	t.Parallel()
	tab := open(t, newSite(t).URL+"/virtual", "")
	item := func(share float64) string { return fmt.Sprintf(`{features: {search: {off: %v}}}`, share) }
	for _, step := range []struct {
		name, says, want string
		events           int
	}{
		{"the first", `virtual.says(5, {}, ` + item(1) + `)`, "B.5 true", 1},
		{"the same", `virtual.says(5, {}, ` + item(1) + `)`, "B.5 true", 1},
		{"a lagging instance", `virtual.says(4, {}, ` + item(0) + `)`, "B.5 true", 1},
		{"an older epoch", `virtual.says(9, {epoch: "A"}, ` + item(0) + `)`, "B.5 true", 1},
		{"an error", `virtual.fails(500)`, "B.5 true", 1},
		{"no connection", `virtual.answer = null`, "B.5 true", 1},
		{"HTML", `virtual.answer = {status: 200, body: "<!doctype html>"}`, "B.5 true", 1},
		{"null", `virtual.answer = {status: 200, body: "null"}`, "B.5 true", 1},
		{"another schema", `virtual.says(9, {schema: 2})`, "B.5 true", 1},
		{"no items", `virtual.says(9, {items: null})`, "B.5 true", 1},
		{"an item that is none", `virtual.says(9, {items: [null]})`, "B.5 true", 1},
		{"no rev", `virtual.says(9, {rev: "x"})`, "B.5 true", 1},
		{"no pace", `virtual.says(9, {poll_after: 0})`, "B.5 true", 1},
		{"the same rev with other words", `virtual.says(5, {}, ` + item(0) + `)`, "B.5 false", 2},
		{"a higher rev", `virtual.says(6, {}, ` + item(1) + `)`, "B.6 true", 3},
		{"a newer epoch, whatever its rev", `virtual.says(1, {epoch: "C"}, ` + item(0) + `)`, "C.1 false", 4},
		{"the epoch before", `virtual.says(7, {}, ` + item(1) + `)`, "C.1 false", 4},
	} {
		browsertest.Value[float64](tab, step.says+`, virtual.step()`)
		got := browsertest.Value[string](tab, "`${pumpkin.state.epoch}.${pumpkin.state.rev} ${pumpkin.blocked('search')}`")
		if events := browsertest.Value[int](tab, `virtual.events`); got != step.want || events != step.events {
			t.Errorf("%s: %s after %d events, want %s after %d", step.name, got, events, step.want, step.events)
		}
	}
}

// A page that was opened with 0.5 for its draw is off where the share is above a half, on every page of its session.
func TestSharesAndTheReturnFromThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tab := open(t, s.URL+"/virtual", "")
	says := func(rev int, features string, spread int) {
		t.Helper()
		browsertest.Value[float64](tab, fmt.Sprintf(`virtual.says(%d, {}, {features: %s, recover_spread: %d}), virtual.step()`, rev, features, spread))
	}
	blocked := func(names ...string) string {
		t.Helper()
		got := ""
		for _, name := range names {
			if browsertest.Value[bool](tab, fmt.Sprintf(`pumpkin.blocked(%q)`, name)) {
				got += name + " "
			}
		}
		return got
	}
	says(1, `{a: {off: 0.5}, b: {off: 0.51}, c: {off: 0}, d: {off: 1}}`, 0)
	if got := blocked("a", "b", "c", "d", "e", "constructor", "__proto__"); got != "b d " {
		t.Errorf("off are %q", got)
	}
	browsertest.Value[bool](tab, `virtual.u = 0.01, true`) // another draw would be in every share
	says(2, `{a: {off: 0.5}, "*": {off: 0.4}}`, 0)
	if got := blocked("a", "b"); got != "" {
		t.Errorf("the place has changed: %q", got)
	}
	tab.Do(chromedp.Navigate(s.URL + "/virtual"))
	browsertest.Value[bool](tab, `virtual.u = 0.01, true`)
	says(3, `{a: {off: 0.5}, b: {off: 0.6}}`, 0)
	if got := blocked("a", "b"); got != "b " {
		t.Errorf("on the next page: %q", got)
	}
	// Everything was off, with a spread: this page's turn comes after a quarter of it.
	says(4, `{"*": {off: 1}, a: {off: 0.1}}`, 40)
	if got := blocked("a", "anything"); got != "a anything " {
		t.Errorf("everything is off: %q", got)
	}
	browsertest.Value[bool](tab, `virtual.u = 0.25, virtual.events = 0, true`)
	says(5, `{c: {off: 1}}`, 0)
	if got := blocked("a", "b", "c", "anything"); got != "a b c anything " {
		t.Errorf("before its turn: %q", got)
	}
	now := browsertest.Value[float64](tab, `virtual.now`)
	browsertest.Value[[]float64](tab, fmt.Sprintf(`virtual.run(%v)`, now+9.99))
	if got, events := blocked("anything"), browsertest.Value[int](tab, `virtual.events`); got == "" || events != 1 {
		t.Errorf("just before its turn: %q, %d events", got, events)
	}
	browsertest.Value[[]float64](tab, fmt.Sprintf(`virtual.run(%v)`, now+10.01))
	if got, events := blocked("a", "b", "c", "anything"), browsertest.Value[int](tab, `virtual.events`); got != "c " || events != 2 {
		t.Errorf("after its turn: %q, %d events", got, events)
	}
}

func TestNewsOnAnyResponseBringThePollForward(t *testing.T) {
	t.Parallel()
	tab := open(t, newSite(t).URL+"/virtual", "")
	browsertest.Value[float64](tab, `virtual.says(5, {poll_after: 60}), virtual.step()`)
	browsertest.Value[bool](tab, `virtual.u = 0.1, pumpkin.seen("B.5"), pumpkin.seen("B.4"), pumpkin.seen("A.9"), true`)
	if wait := browsertest.Value[float64](tab, `virtual.wait()`); math.Abs(wait-60) > 1e-6 {
		t.Errorf("nothing new: the poll in %v s, want 60", wait)
	}
	if wait := browsertest.Value[float64](tab, `pumpkin.seen("B.6"), virtual.wait()`); math.Abs(wait-6) > 1e-6 {
		t.Errorf("news: the poll in %v s, want 6", wait)
	}
	browsertest.Value[bool](tab, `virtual.u = 0, true`)
	if wait := browsertest.Value[float64](tab, `pumpkin.seen("B.6"), virtual.wait()`); math.Abs(wait-6) > 1e-6 {
		t.Errorf("the same news again: the poll in %v s, want 6", wait)
	}
}

// Screen readers read out what is added to a region that was there before, and all of a region that is new.
func TestRegionsStayAndOnlyNewsIsAdded(t *testing.T) {
	t.Parallel()
	tab := open(t, newSite(t).URL+"/virtual", "")
	browsertest.Value[float64](tab, `virtual.says(1, {}, {message: {en: "one"}, notice_rev: 1}), virtual.step()`)
	browsertest.Value[bool](tab, `(() => { const b = `+banner+`.shadowRoot; window.kept = [...b.children, b.querySelector("[part]")];
		window.mutations = 0; new MutationObserver(m => mutations += m.length).observe(b, {childList: true, subtree: true, characterData: true, attributes: true}); return true; })()`)
	kept := `[...` + banner + `.shadowRoot.children].every((e, n) => e == kept[n]) && kept[2].isConnected`
	browsertest.Value[float64](tab, `virtual.says(2, {poll_after: 30}, {message: {en: "one"}, notice_rev: 1, features: {x: {off: 1}}}), virtual.step()`)
	if !browsertest.Value[bool](tab, kept+` && mutations == 0`) {
		t.Error("a change that nobody sees touched the banner")
	}
	browsertest.Value[float64](tab, `virtual.says(3, {}, {message: {en: "two"}, severity: "critical", notice_rev: 3}), virtual.step()`)
	if got := browsertest.Value[string](tab, `[...`+banner+`.shadowRoot.children].map(r => r.role + ":" + r.textContent).join(" ")`); got != "alert:criticaltwodismiss status:" {
		t.Errorf("regions: %q", got)
	}
	if !browsertest.Value[bool](tab, `[...`+banner+`.shadowRoot.children].every((e, n) => e == kept[n])`) {
		t.Error("a region was replaced")
	}
}

func TestTheMessageIsInThePersonsLanguage(t *testing.T) {
	t.Parallel()
	tab := open(t, newSite(t).URL+"/virtual", "")
	for i, c := range []struct{ banner, languages, message, want string }{
		{"", `["de-AT", "en"]`, `{en: "English", de: "Deutsch"}`, "de"},
		{"", `["pt"]`, `{en: "English", "pt-BR": "Português"}`, "pt-BR"},
		{"", `["pt-PT"]`, `{en: "English", "pt-BR": "B", "pt-PT": "P"}`, "pt-PT"},
		{"", `["fr", "de"]`, `{en: "English", de: "Deutsch"}`, "de"},
		{"", `["fr"]`, `{de: "Deutsch", en: "English"}`, "en"},
		{"", `[]`, `{fr: "Français"}`, "fr"},
		{"de", `["en"]`, `{en: "English", de: "Deutsch"}`, "de"},
		{"xx", `["en"]`, `{en: "English", de: "Deutsch"}`, "en"},
	} {
		browsertest.Value[float64](tab, fmt.Sprintf(`Object.defineProperty(navigator, "languages", {value: %s, configurable: true}), %s.lang = %q,
			virtual.says(%d, {}, {id: "%[4]d", message: %[5]s}), virtual.step()`, c.languages, banner, c.banner, i, c.message))
		if got := browsertest.Value[string](tab, banner+`.shadowRoot.querySelector("span").lang`); got != c.want {
			t.Errorf("%s of a person who reads %s, banner in %q: %s, want %s", c.message, c.languages, c.banner, got, c.want)
		}
	}
}

// Pages may forbid storage, or it holds what somebody else has left there.
func TestWidgetWorksWithoutStorage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tab := open(t, s.URL+"/none", "")
	for _, left := range []string{`"null"`, `"{"`, `"[]"`, `"7"`, `JSON.stringify({place: 0.5, state: {schema: 1}})`, `JSON.stringify({place: 2, state: {items: 7}})`} {
		browsertest.Value[bool](tab, fmt.Sprintf(`localStorage.clear(), sessionStorage["pumpkin " + location.origin + "/pumpkin.json"] = localStorage["pumpkin " + location.origin + "/pumpkin.json"] = %s, true`, left))
		tab.Do(chromedp.Navigate(s.URL + "/virtual"))
		browsertest.Value[float64](tab, `virtual.says(1, {}, {features: {x: {off: 1}}}), virtual.step()`)
		if got := shows(tab); got != "x" || !browsertest.Value[bool](tab, `pumpkin.blocked("x")`) {
			t.Errorf("storage holds %s: shows %q", left, got)
		}
	}
	browsertest.Value[bool](tab, `["localStorage", "sessionStorage"].forEach(s => Object.defineProperty(window, s, {get() { throw new DOMException("no", "SecurityError"); }})), true`)
	browsertest.Value[float64](tab, `virtual.says(2, {}, {message: {en: "y"}}), virtual.step()`)
	if got := shows(tab); got != "y" {
		t.Errorf("without storage: shows %q", got)
	}
	browsertest.Value[bool](tab, banner+`.shadowRoot.querySelector("button").click(), true`)
	if got := shows(tab); got != "" {
		t.Errorf("without storage, after dismissing: shows %q", got)
	}
}
