package pumpkin

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheBigSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{Templates: map[string]Entry{
			"half": {Severity: Major, Message: map[string]string{"en": "Half of it is off."}, Features: map[string]Feature{"search": {Off: 0.5}}, TTL: 2 * time.Hour},
		}})
		ask := func(method, target, body string) (a modeAnswer) {
			t.Helper()
			w := call(p, method, target, body)
			answers(t, w, 200, "")
			if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := ask("GET", "/mode", ""); a.On || a.Item != nil {
			t.Errorf("at first: %+v", a)
		}
		on := `{"on":true,"template":"site-down","ttl":"30m","reason":"fire"}`
		a := ask("PUT", "/mode", on)
		if !a.On || a.Template != "site-down" || a.Rev != 1 || !*a.Changed || time.Until(a.Item.ExpiresAt) != 30*time.Minute || a.Item.Actor != "admin" {
			t.Errorf("on: %+v", a)
		}
		if !isOff(p, "anything", "c") || !strings.Contains(poll(p, "GET").Body.String(), "Wir sind im Moment nicht erreichbar") {
			t.Errorf("not everything is off: %s", poll(p, "GET").Body)
		}
		if a := ask("PUT", "/mode", on); *a.Changed || a.Rev != 1 {
			t.Errorf("the same again: %+v", a)
		}
		if a := ask("PUT", "/mode", `{"on":true,"template":"half","reason":"better"}`); a.Template != "half" || a.Rev != 2 || time.Until(a.Item.ExpiresAt) != 2*time.Hour {
			t.Errorf("another text, with its own ttl: %+v", a)
		}
		answers(t, call(p, "DELETE", "/mode", ""), 204, "")
		answers(t, call(p, "DELETE", "/mode", ""), 204, "")
		if read(t, p).Active || ask("GET", "/mode", "").On {
			t.Error("still on")
		}
		ask("PUT", "/mode", on)
		if a := ask("PUT", "/mode", `{"on":false,"reason":"over"}`); a.On || read(t, p).Active {
			t.Errorf("on:false: %+v", a)
		}
		w := call(p, "PUT", "/mode?dry_run=1", on)
		if answers(t, w, 200, ""); !strings.Contains(w.Body.String(), `"active":true`) || read(t, p).Active {
			t.Errorf("dry run: %s", w.Body)
		}
		answers(t, call(p, "PUT", "/mode", on, "If-Match", `"1"`), 412, StaleRev)
		answers(t, call(p, "POST", "/mode", on), 405, MethodNotAllowed)
		answers(t, call(p, "PUT", "/mode", on, "Content-Type", "text/plain"), 415, NotJSON)
	})
}

func TestHostileOrdersForTheModeChangeNothing(t *testing.T) {
	p := open(t, Config{})
	put(t, p, modeID, entry("before"))
	before := p.current.Load().board
	for body, want := range map[string]struct {
		status int
		reason Reason
	}{
		`{"on":true,"template":"nowhere","reason":"r"}`:                 {422, UnknownTemplate},
		`{"on":true,"reason":"r"}`:                                      {422, UnknownTemplate},
		`{"on":true,"template":"site-down"}`:                            {422, InvalidField},
		`{"on":false}`:                                                  {422, InvalidField},
		`{"template":"site-down","reason":"r"}`:                         {422, InvalidField},
		`{"on":"yes","template":"site-down","reason":"r"}`:              {422, InvalidField},
		`{"on":null,"template":"site-down","reason":"r"}`:               {422, InvalidField},
		`{"on":true,"template":"site-down","reason":"r","ttl":"25h"}`:   {422, InvalidField},
		`{"on":true,"template":"site-down","reason":"r","ttl":"0s"}`:    {422, InvalidField},
		`{"on":true,"template":"site-down","reason":"\u202e"}`:          {422, InvalidField},
		`{"on":true,"template":"site-down","reason":"r","features":{}}`: {422, UnknownField},
		`{"on":true,"on":false,"template":"site-down","reason":"r"}`:    {422, InvalidField},
		`{"on":true,`: {400, MalformedJSON},
		``:            {400, MalformedJSON},
		`[]`:          {400, MalformedJSON},
		`{"on":true,"template":"` + strings.Repeat("x", 17<<10) + `"}`: {413, BodyTooLarge},
	} {
		answers(t, call(p, "PUT", "/mode", body, "Content-Type", "application/json"), want.status, want.reason)
	}
	if after := p.current.Load().board; string(after.body) != string(before.body) {
		t.Errorf("changed: %s", after.body)
	}
	for _, r := range p.Audit(100)[:16] {
		if r.Action != "mode_on" || r.Applied != "no" || r.Refused == "" || r.Actor != "admin" {
			t.Errorf("audited as %+v", r)
		}
	}
}

func TestTemplatesAreListedAndCheckedAtTheStart(t *testing.T) {
	p := open(t, Config{Templates: map[string]Entry{"site-down": {Severity: Minor, Message: map[string]string{"en": "Our own words."}}}})
	w := call(p, "GET", "/templates", "")
	answers(t, w, 200, "")
	if got := p.Templates(); strings.Join(got, " ") != "degraded maintenance site-down" || !strings.Contains(w.Body.String(), "Our own words.") {
		t.Errorf("%v: %s", got, w.Body)
	}
	e, ok := p.Template("site-down")
	e.Message["en"] = "changed"
	if again, _ := p.Template("site-down"); !ok || again.Message["en"] != "Our own words." || again.Template != "site-down" {
		t.Errorf("a caller changed a template: %+v", again)
	}
	for want, e := range map[string]Entry{
		"severity: must":         {Message: map[string]string{"en": "x"}},
		`default language, "en`:  {Severity: Minor, Message: map[string]string{"de": "x"}},
		"belong to the occasion": {Severity: Minor, Message: map[string]string{"en": "x"}, Reason: "r"},
		"ttl: must be above 0":   {Severity: Minor, Message: map[string]string{"en": "x"}, TTL: 25 * time.Hour},
	} {
		if p, err := New(Config{Templates: map[string]Entry{"bad": e}}); err == nil || p != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"bad"`) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := New(Config{Templates: map[string]Entry{"a b": {Severity: Minor, Message: map[string]string{"en": "x"}}}}); err == nil {
		t.Error("a template may be called a b")
	}
	czech := open(t, Config{DefaultLang: "cs"}) // none of the built-in texts is Czech
	answers(t, call(czech, "PUT", "/mode", `{"on":true,"template":"site-down","reason":"r"}`), 422, UnknownTemplate)
	for lang := range map[string]bool{"en": true, "de": true, "fr": true, "es": true} {
		if got := open(t, Config{DefaultLang: lang}).Templates(); len(got) != 3 {
			t.Errorf("%s: %v", lang, got)
		}
	}
}

func TestForceOffKeepsAutomationAwayAndPeopleFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		raise := func(id string) Reason { return reasonOf(p.Raise("auto", id, off("busy", 1, "search"))) }
		if got := raise("search"); got != "" || !isOff(p, "search", "c") {
			t.Fatalf("raised: %q", got)
		}
		answers(t, call(p, "PUT", "/force_off/search", `{"ttl":"10m","reason":"false alarm"}`), 200, "")
		if isOff(p, "search", "c") || raise("search") != HeldOff || raise("other") != "" {
			t.Error("automation is not kept away, or from too much")
		}
		put(t, p, "search", off("by hand", 1, "search"))
		if !isOff(p, "search", "c") {
			t.Error("a person is kept away")
		}
		answers(t, call(p, "DELETE", "/items/search", ""), 204, "")
		time.Sleep(10*time.Minute - 1)
		if raise("search") != HeldOff {
			t.Error("ended early")
		}
		time.Sleep(time.Nanosecond)
		if got := raise("search"); got != "" {
			t.Errorf("after its time: %s", got)
		}
		answers(t, call(p, "PUT", "/force_off/*", `{"reason":"all of them"}`), 200, "")
		if read(t, p).Active || raise("anything") != HeldOff || p.Status().ForceOff != 1 {
			t.Error("the star does not hold")
		}
		if w := call(p, "GET", "/force_off", ""); !strings.Contains(w.Body.String(), "all of them") {
			t.Errorf("list: %s", w.Body)
		}
		answers(t, call(p, "DELETE", "/force_off/*", ""), 204, "")
		answers(t, call(p, "DELETE", "/force_off/*", ""), 204, "")
		if got := raise("anything"); got != "" {
			t.Errorf("after DELETE: %s", got)
		}
		for body, reason := range map[string]Reason{
			`{"ttl":"25h","reason":"r"}`: InvalidField, `{"ttl":"0s","reason":"r"}`: InvalidField, `{"ttl":"1h"}`: InvalidField,
			`{"reason":7}`: InvalidField, `{"reason":"r","id":"x"}`: UnknownField, `{`: MalformedJSON,
		} {
			status := 422
			if reason == MalformedJSON {
				status = 400
			}
			answers(t, call(p, "PUT", "/force_off/x", body), status, reason)
		}
		answers(t, call(p, "PUT", "/force_off/.x", `{"reason":"r"}`), 422, InvalidField)
		answers(t, call(p, "GET", "/force_off/x", ""), 405, MethodNotAllowed)
	})
}

func TestAPersonsItemIsNothingForAutomation(t *testing.T) {
	p := open(t, Config{})
	put(t, p, "search", off("by hand", 0.5, "search"))
	before := p.State()
	if got := reasonOf(p.Raise("auto", "search", off("busy", 1, "search"))); got != ManualWins {
		t.Errorf("raise: %q", got)
	}
	if ended, err := p.Lower("auto", "search"); ended || err != nil {
		t.Errorf("lower: %v, %v", ended, err)
	}
	if after := p.State(); !sameItems(before.Items, after.Items) || after.Rev != before.Rev {
		t.Errorf("changed: %+v", after)
	}
	// The other way round a person takes over.
	if err := p.Raise("auto", "pay", off("busy", 1, "pay")); err != nil {
		t.Fatal(err)
	}
	put(t, p, "pay", off("by hand", 0.5, "pay"))
	if got := reasonOf(p.Raise("auto", "pay", off("busy", 1, "pay"))); got != ManualWins {
		t.Errorf("after a person took over: %q", got)
	}
	// And there is room for people, whatever automation does.
	q := open(t, Config{})
	n := 0
	for i := range maxItems {
		if q.Raise("auto", string(rune('a'+i)), entry("busy")) == nil {
			n++
		}
	}
	if n != maxAutomatic || reasonOf(q.Raise("auto", "z", entry("busy"))) != TooManyItems {
		t.Errorf("automation holds %d items", n)
	}
	put(t, q, "person", entry("by hand"))
	if ended, err := q.Lower("auto", "a"); !ended || err != nil {
		t.Errorf("lower: %v, %v", ended, err)
	}
}

// reasonOf is the word of a refusal, "" for none.
func reasonOf(err error) Reason {
	if refusal, ok := err.(*Refusal); ok {
		return refusal.Reason
	}
	return ""
}
