package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser"
	"github.com/spillway-go/spillway/internal/browser/browsertest"
)

// number reads the text of an element as a number.
func number(id string) string {
	return fmt.Sprintf(`Number(document.getElementById(%q).textContent.replaceAll(",", ""))`, id)
}

func TestPageShowsABurstAndThePumpkin(t *testing.T) {
	d := started(t, slowRefill(t)...)
	tab := browsertest.Open(t, d.url("/"), 1280, 900, "")
	tab.Becomes(`document.getElementById("state").dataset.state === "idle"`)
	tab.Becomes(`document.querySelector("[data-play=burst]").ariaDisabled === "false"`)
	before := browsertest.Value[string](tab, `document.getElementById("flow-chart").toDataURL()`)

	tab.Do(chromedp.Click(chromedp.CSS(`[data-play="burst"]`)))
	tab.Becomes(number("total-offered") + " === 25")
	tab.Becomes(number("total-over") + " === 5")
	if served := browsertest.Value[int](tab, number("total-served")+"+"+number("total-delayed")); served != 20 {
		t.Errorf("the page says that %d were served, want 20", served)
	}
	tab.Becomes(`document.getElementById("result").textContent.includes("5 refused with 429")`)
	if after := browsertest.Value[string](tab, `document.getElementById("flow-chart").toDataURL()`); after == before {
		t.Error("the chart looks as it did before the burst")
	}

	tab.Do(chromedp.Click(chromedp.CSS("#pumpkin")))
	tab.Becomes(`document.querySelector("#banner-status .banner .message")?.textContent.includes("Reports are switched off")`)
	tab.Becomes(`document.getElementById("pumpkin").ariaPressed === "true"`)
	if _, _, off := d.pumpkin.FeatureOff(featureReports, ""); !off {
		t.Error("reports are not off")
	}
	tab.Do(chromedp.Click(chromedp.CSS("#pumpkin")))
	tab.Becomes(`document.querySelector(".banner") === null`)
	tab.Becomes(`document.getElementById("pumpkin").ariaPressed === "false"`)
}

// A phone's width must not scroll sideways, and everything must be reachable and pressable with the keyboard alone.
func TestPageWorksOnAPhoneAndWithTheKeyboard(t *testing.T) {
	d := started(t, slowRefill(t)...)
	tab := browsertest.Open(t, d.url("/"), 360, 800, "")
	tab.Becomes(`document.querySelector("[data-play=burst]").ariaDisabled === "false"`)
	if wide := browsertest.Value[int](tab, `document.documentElement.scrollWidth`); wide > 360 {
		t.Errorf("the page is %d pixels wide on a screen of 360", wide)
	}
	for reached := ""; !strings.Contains(reached, "burst"); {
		tab.Do(chromedp.KeyEvent("\t"))
		last := reached
		if reached = browsertest.Value[string](tab, `document.activeElement.outerHTML`); reached == last || reached == "" {
			t.Fatalf("the tab key is stuck at %q", reached)
		}
	}
	tab.Do(chromedp.KeyEvent("\r"))
	tab.Becomes(number("total-offered") + " === 25")
	if focused := browsertest.Value[string](tab, `document.activeElement.dataset.play`); focused != "burst" {
		t.Errorf("pressing the button moved the focus to %q", focused)
	}
	unlabelled := browsertest.Value[[]string](tab, `[...document.querySelectorAll("button, a, canvas, section")]
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
	page, end, err := browser.Open(parent, 800, 600)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	messages := chromedp.Console(page)
	tab := browsertest.Tab{T: t, Page: page} // whose console is read here, and fails nothing
	tab.Do(chromedp.Navigate(d.url("/")))
	browsertest.Value[bool](tab, `document.body.setAttribute("style", "color: red"), document.body.insertAdjacentHTML("beforeend", "<p style='color: red'>"), true`)
	for m, err := range messages {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(m.Text, "Content Security Policy") {
			return
		}
	}
}
