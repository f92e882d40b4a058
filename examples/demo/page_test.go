package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/examples/demo/browser"
)

// opens opens the demo's page in Chromium, and fails the test at its end if the page wrote anything to the console: an error,
// a warning, or a violation of its own policy.
func opens(t *testing.T, d *demo, width, height int64) context.Context {
	t.Helper()
	tab, end, err := browser.Open(context.Background(), width, height)
	if err != nil {
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
			written = append(written, fmt.Sprintf("%s %s: %s (%s:%d)", m.Type, m.Source, m.Text, m.URL, m.Line))
		}
	}()
	timed, cancel := context.WithTimeout(tab, 2*time.Minute)
	t.Cleanup(func() {
		// What the page has written arrives before the answer to this.
		_, _ = chromedp.Run(timed, chromedp.Evaluate[int]("1"))
		cancel()
		end()
		<-read
		for _, line := range written {
			t.Errorf("the page wrote to the console: %s", line)
		}
	})
	do(t, timed, chromedp.Navigate(d.url("/")))
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
	if _, err := chromedp.Run(tab, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(60*time.Second))); err != nil {
		t.Fatalf("the page never came to %s: %v", condition, err)
	}
}

func evaluated[T any](t *testing.T, tab context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(tab, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// number reads the text of an element as a number.
func number(id string) string {
	return fmt.Sprintf(`Number(document.getElementById(%q).textContent.replaceAll(",", ""))`, id)
}

func TestPageShowsABurstAndThePumpkin(t *testing.T) {
	d := started(t, slowRefill(t)...)
	tab := opens(t, d, 1280, 900)
	becomes(t, tab, `document.getElementById("state").dataset.state === "idle"`)
	becomes(t, tab, `document.querySelector("[data-play=burst]").ariaDisabled === "false"`)
	before := evaluated[string](t, tab, `document.getElementById("flow-chart").toDataURL()`)

	do(t, tab, chromedp.Click(chromedp.CSS(`[data-play="burst"]`)))
	becomes(t, tab, number("total-offered")+" === 25")
	becomes(t, tab, number("total-over")+" === 5")
	if served := evaluated[int](t, tab, number("total-served")+"+"+number("total-delayed")); served != 20 {
		t.Errorf("the page says that %d were served, want 20", served)
	}
	becomes(t, tab, `document.getElementById("result").textContent.includes("5 refused with 429")`)
	if after := evaluated[string](t, tab, `document.getElementById("flow-chart").toDataURL()`); after == before {
		t.Error("the chart looks as it did before the burst")
	}

	do(t, tab, chromedp.Click(chromedp.CSS("#pumpkin")))
	becomes(t, tab, `document.querySelector("#banner-status .banner .message")?.textContent.includes("Reports are switched off")`)
	becomes(t, tab, `document.getElementById("pumpkin").ariaPressed === "true"`)
	if _, _, off := d.pumpkin.FeatureOff(featureReports, ""); !off {
		t.Error("reports are not off")
	}
	do(t, tab, chromedp.Click(chromedp.CSS("#pumpkin")))
	becomes(t, tab, `document.querySelector(".banner") === null`)
	becomes(t, tab, `document.getElementById("pumpkin").ariaPressed === "false"`)
}

// A phone's width must not scroll sideways, and everything must be reachable and pressable with the keyboard alone.
func TestPageWorksOnAPhoneAndWithTheKeyboard(t *testing.T) {
	d := started(t, slowRefill(t)...)
	tab := opens(t, d, 360, 800)
	becomes(t, tab, `document.querySelector("[data-play=burst]").ariaDisabled === "false"`)
	if wide := evaluated[int](t, tab, `document.documentElement.scrollWidth`); wide > 360 {
		t.Errorf("the page is %d pixels wide on a screen of 360", wide)
	}
	for reached := ""; !strings.Contains(reached, "burst"); {
		do(t, tab, chromedp.KeyEvent("\t"))
		last := reached
		if reached = evaluated[string](t, tab, `document.activeElement.outerHTML`); reached == last || reached == "" {
			t.Fatalf("the tab key is stuck at %q", reached)
		}
	}
	do(t, tab, chromedp.KeyEvent("\r"))
	becomes(t, tab, number("total-offered")+" === 25")
	if focused := evaluated[string](t, tab, `document.activeElement.dataset.play`); focused != "burst" {
		t.Errorf("pressing the button moved the focus to %q", focused)
	}
	unlabelled := evaluated[[]string](t, tab, `[...document.querySelectorAll("button, a, canvas, section")]
		.filter((e) => !(e.ariaLabel || e.textContent.trim() || document.getElementById(e.getAttribute("aria-labelledby"))))
		.map((e) => e.outerHTML)`)
	if len(unlabelled) > 0 {
		t.Errorf("without a label: %v", unlabelled)
	}
}

// The control of the console check: a page that breaks its policy must be noticed.
func TestAViolationOfThePolicyWouldBeNoticed(t *testing.T) {
	d := started(t)
	parent, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tab, end, err := browser.Open(parent, 800, 600)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	messages := chromedp.Console(tab)
	do(t, tab, chromedp.Navigate(d.url("/")))
	evaluated[bool](t, tab, `document.body.setAttribute("style", "color: red"), document.body.insertAdjacentHTML("beforeend", "<p style='color: red'>"), true`)
	for m, err := range messages {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(m.Text, "Content Security Policy") {
			return
		}
	}
}
