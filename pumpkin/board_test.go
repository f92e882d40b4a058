package pumpkin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// sketch is the whole state of a board in a few lines.
func sketch(b board) string {
	d := b.document()
	s := fmt.Sprintf("rev %d, poll after %d\n", d.Rev, d.PollAfter)
	for _, h := range b.held {
		s += fmt.Sprintf("%s %s notice %d until %v", h.notice.ID, h.notice.Severity, h.notice.NoticeRev, h.expires.Sub(start))
		for _, f := range slices.Sorted(maps.Keys(h.notice.Features)) {
			s += fmt.Sprintf(" %s=%v", f, h.notice.Features[f].Off)
		}
		s += "\n"
	}
	return s
}

// step runs one command of a script.
func step(t *testing.T, b board, line string) (board, string) {
	t.Helper()
	words := strings.SplitN(line, " ", 4)
	at, err := time.ParseDuration(words[0])
	if err != nil || len(words) < 2 {
		t.Fatalf("%q: %v", line, err)
	}
	now := start.Add(at)
	switch {
	case words[1] == "tick":
		b, _ = b.advance(now)
		return b, sketch(b)
	case words[1] == "clear" && len(words) == 3:
		b = b.clear(now, words[2])
		return b, sketch(b)
	case words[1] == "put" && len(words) == 4:
		e, err := parseEntry([]byte(words[3]), words[2])
		if err == nil {
			b, err = b.put(now, words[2], e)
		}
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			return b, string(refusal.Reason) + "\n" + sketch(b)
		}
		return b, sketch(b)
	}
	t.Fatalf("no such command: %q", line)
	return b, ""
}

func TestBoardScript(t *testing.T) {
	script, err := os.ReadFile("testdata/board.txt")
	if err != nil {
		t.Fatal(err)
	}
	b, steps := newBoard(testEpoch, "en", 15, 60), 0
	for block := range strings.SplitSeq(string(script), "\n\n") {
		var lines []string
		for line := range strings.Lines(block) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		command, want, ok := strings.Cut(strings.Join(lines, ""), "\n----\n")
		if !ok {
			t.Fatalf("no ---- in %q", block)
		}
		var got string
		b, got = step(t, b, command)
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Fatalf("%s\nleads to\n%swant\n%s", command, got, want)
		}
		steps++
	}
	if steps < 15 {
		t.Fatalf("only %d steps were read", steps)
	}
}

func TestNoticeRevGrowsExactlyWithWhatPeopleSee(t *testing.T) {
	first := Entry{
		Severity: Major, Message: map[string]string{"en": "x"}, URL: "https://s.example/1", LinkText: "More",
		Features: map[string]Feature{"search": {Off: 0.5}}, Reason: "r",
	}
	for name, c := range map[string]struct {
		edit        func(*Entry)
		rev, isNews bool
	}{
		"severity":       {func(e *Entry) { e.Severity = Minor }, true, true},
		"text":           {func(e *Entry) { e.Message = map[string]string{"en": "y"} }, true, true},
		"language":       {func(e *Entry) { e.Message = map[string]string{"en": "x", "de": "x"} }, true, true},
		"url":            {func(e *Entry) { e.URL = "https://s.example/2" }, true, true},
		"link text":      {func(e *Entry) { e.LinkText = "Less" }, true, true},
		"sticky":         {func(e *Entry) { e.Sticky = true }, true, true},
		"share":          {func(e *Entry) { e.Features = map[string]Feature{"search": {Off: 1}} }, true, false},
		"feature":        {func(e *Entry) { e.Features = nil }, true, false},
		"recover spread": {func(e *Entry) { e.RecoverSpread = 5 }, true, false},
		"ttl":            {func(e *Entry) { e.TTL = maxTTL }, false, false},
		"reason":         {func(e *Entry) { e.Reason, e.Ticket = "other", "T" }, false, false},
	} {
		b, err := newBoard(testEpoch, "en", 15, 60).put(start, "x", first)
		if err != nil {
			t.Fatal(err)
		}
		second := first
		c.edit(&second)
		if b, err = b.put(start, "x", second); err != nil {
			t.Fatal(err)
		}
		rev, notice := uint64(1), uint64(1)
		if c.rev {
			rev = 2
		}
		if c.isNews {
			notice = 2
		}
		if got := b.held[0].notice.NoticeRev; b.rev != rev || got != notice {
			t.Errorf("%s: rev %d and notice_rev %d, want %d and %d", name, b.rev, got, rev, notice)
		}
	}
}

// What a person has ended is remembered for as long as somebody might still believe in it, and no more of it than there is room for.
func TestWhatWasEndedIsRememberedForAWhile(t *testing.T) {
	b := newBoard(testEpoch, "en", 15, 60)
	write := func(at time.Time, id string, starts time.Time) {
		t.Helper()
		var err error
		if b, err = b.put(at, id, Entry{Severity: Minor, Message: map[string]string{"en": "x"}, Reason: "r", TTL: time.Hour, StartsAt: starts}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, until map[string]time.Duration) {
		t.Helper()
		got := map[string]time.Duration{}
		for _, tomb := range b.tombstones {
			got[tomb.id] = tomb.until.Sub(start)
		}
		if !maps.Equal(got, until) || len(b.tombstones) != len(until) {
			t.Errorf("%s: remembered are %v, want %v", what, got, until)
		}
	}
	write(start, "now", time.Time{})
	write(start, "later", start.Add(48*time.Hour))
	b = b.clear(start, "now")
	b = b.clear(start, "later")
	b = b.clear(start, "never there")
	want("both ended", map[string]time.Duration{"now": 24 * time.Hour, "later": 49 * time.Hour})
	write(start.Add(time.Minute), "now", time.Time{})
	want("one is back", map[string]time.Duration{"later": 49 * time.Hour})
	b = b.clear(start.Add(time.Minute), "now")
	write(start.Add(24*time.Hour+time.Minute), "another", time.Time{})
	want("a day later", map[string]time.Duration{"later": 49 * time.Hour})
	for i := range 2 * maxTombstones {
		write(start.Add(25*time.Hour), fmt.Sprint("x", i), time.Time{})
		b = b.clear(start.Add(25*time.Hour), fmt.Sprint("x", i))
	}
	if n := len(b.tombstones); n != maxTombstones || b.tombstones[n-1].id != fmt.Sprint("x", 2*maxTombstones-1) {
		t.Errorf("%d are remembered, the last of them %q", n, b.tombstones[n-1].id)
	}
}

// Each id is held off once, for as long as was said last, and only so many are.
func TestHoldsAreBounded(t *testing.T) {
	b := newBoard(testEpoch, "en", 15, 60)
	hold := func(at time.Duration, id string, lasts time.Duration) (err error) {
		now := start.Add(at)
		b, err = b.forceOff(now, handsOff{id: id, until: now.Add(lasts)})
		return err
	}
	for i := range maxItems {
		if err := hold(0, fmt.Sprint("x", i), time.Duration(i+1)*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := hold(0, "one more", time.Hour); err == nil || len(b.holds) != maxItems {
		t.Errorf("%v, %d are held off", err, len(b.holds))
	}
	if err := hold(time.Minute, "x0", 2*time.Hour); err != nil || len(b.holds) != maxItems { // instead of its first
		t.Errorf("%v, %d are held off", err, len(b.holds))
	}
	if err := hold(2*time.Hour, "one more", time.Hour); err != nil || len(b.holds) != maxItems { // x1 is over, and x0 is not
		t.Errorf("%v, %d are held off", err, len(b.holds))
	}
	if b = b.endForceOff(start.Add(2*time.Hour), "one more"); len(b.holds) != maxItems-1 {
		t.Errorf("%d are held off", len(b.holds))
	}
}

func TestRetryAfterIsWholeSecondsAndNeverTooFew(t *testing.T) {
	for wait, want := range map[time.Duration]string{0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90", -time.Hour: "1"} {
		if got := wholeSeconds(wait); got != want {
			t.Errorf("%v: %s, want %s", wait, got, want)
		}
	}
}

func TestWhatMayBeALanguage(t *testing.T) {
	for tag, want := range map[string]bool{
		"en": true, "EN": true, "zz": true, "pt-BR": true, "zh-Hant-TW": true, "abcdefgh": true, "en-x": true, "de-1996": true, "en-0-9": true,
		strings.Repeat("abcdefgh-", 3) + "abcdefgh": true, strings.Repeat("abcdefgh-", 3) + "abcdefg-a": false, // 35 and 36
		"": false, "e": false, "abcdefghi": false, "en-abcdefghi": false, "en-": false, "-en": false, "en--x": false, "e1": false, "en_GB": false,
		"e@": false, "e[": false, "e{": false, "en-/": false, "en-:": false, "ä": false,
	} {
		if IsLanguage(tag) != want {
			t.Errorf("%q: %t", tag, !want)
		}
	}
}

// modelItem is what the property test remembers about an item, apart from the board.
type modelItem struct {
	words   string
	share   float64
	expires time.Duration
	notice  uint64
}

// TestBoardAgreesWithAModel drives a board and a naive model with the same random writes. The model's rev counts changes
// of its own set of items, so neither the bytes nor their comparison is shared with the board.
func TestBoardAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, model, rev, at := newBoard(testEpoch, "en", 15, 60), map[string]modelItem{}, uint64(0), time.Duration(0)
		sweep := func() {
			ends := map[time.Duration]bool{} // what ends at one moment is one change
			for _, m := range model {
				if m.expires <= at {
					ends[m.expires] = true
				}
			}
			rev += uint64(len(ends))
			maps.DeleteFunc(model, func(_ string, m modelItem) bool { return m.expires <= at })
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at += time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			now := start.Add(at)
			sweep()
			switch rapid.SampledFrom([]string{"put", "put", "clear", "tick"}).Draw(t, "command") {
			case "put":
				m := modelItem{
					words:   rapid.SampledFrom([]string{"one", "two"}).Draw(t, "words"),
					share:   rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "share"),
					expires: at,
				}
				e := off(m.words, m.share, "f")
				e.TTL = time.Duration(rapid.IntRange(1, 120).Draw(t, "ttl")) * time.Second
				m.expires += e.TTL
				old, had := model[id]
				if !had || old.words != m.words || old.share != m.share {
					rev++
				}
				if m.notice = old.notice; !had || old.words != m.words {
					m.notice = rev
				}
				model[id] = m
				var err error
				if b, err = b.put(now, id, e); err != nil {
					t.Fatal(err)
				}
			case "clear":
				if _, had := model[id]; had {
					rev++
				}
				delete(model, id)
				b = b.clear(now, id)
			case "tick":
				b, _ = b.advance(now)
			}
			agree(t, b, model, rev)
		}
	})
}

// agree fails unless the document shows what the model holds.
func agree(t *rapid.T, b board, model map[string]modelItem, rev uint64) {
	var d Document
	if err := json.Unmarshal(b.body, &d); err != nil {
		t.Fatal(err)
	}
	if d.Rev != rev || d.Active != (len(model) > 0) || len(d.Items) != len(model) {
		t.Fatalf("document %s\nmodel: rev %d, %+v", b.body, rev, model)
	}
	for _, n := range d.Items {
		m, ok := model[n.ID]
		h, _ := b.find(n.ID)
		if !ok || n.Message["en"] != m.words || n.Features["f"].Off != m.share || n.NoticeRev != m.notice || h.expires.Sub(start) != m.expires {
			t.Fatalf("item %+v until %v\nmodel %+v", n, h.expires.Sub(start), m)
		}
	}
	for i := range b.held {
		b.held[i].warn = time.Time{} // leaves the ends alone
	}
	next, ok := b.next()
	var soonest time.Duration
	for _, m := range model {
		if soonest == 0 || m.expires < soonest {
			soonest = m.expires
		}
	}
	if ok != (len(model) > 0) || ok && next.Sub(start) != soonest {
		t.Fatalf("next expiry %v %v, model %v", next.Sub(start), ok, soonest)
	}
}

// FuzzAdminBody holds what must be true of every body: it is refused with a reason, or leads to a small sound document
// that stays the same when the body comes again.
func FuzzAdminBody(f *testing.F) {
	for _, s := range []string{
		body(""), body(`,"features":{"search":{"off":0.5},"*":{"off":1}},"ttl":"30m"`), body(`,"url":"https://s.example/#a","link_text":"x"`),
		body(`,"dismissible":false,"recover_spread":60,"ticket":"T"`), body(`,"features":{"a":{"off":-0}}`), body(`,"ttl":"-1s"`),
		`{"severity":"minor","reason":"r","message":{"en":"\ud83d\ude00 \u202e"}}`, `{"a":[{}],"a":1}`, `{"ttl":null}`, `[`, ``, `{}{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseEntry(data, "x")
		b := newBoard(testEpoch, "en", 15, 60)
		var next board
		if err == nil {
			next, err = b.put(start, "x", e)
		}
		if err != nil {
			refusal, ok := errors.AsType[*Refusal](err)
			if !ok || refusal.Detail == "" || refusal.Reason.status() < 400 {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var d Document
		if err := json.Unmarshal(next.body, &d); err != nil || len(next.body) > maxDocument || len(d.Items) != 1 || d.Rev != 1 {
			t.Fatalf("%v: %s", err, next.body)
		}
		if strings.ContainsAny(string(next.body[:len(next.body)-1]), "<>&\x00\n\r\t\u202e\u2028") {
			t.Fatalf("dangerous: %q", next.body)
		}
		if u := d.Items[0].URL; u != "" && !strings.HasPrefix(strings.ToLower(u), "http") {
			t.Fatalf("URL %q", u)
		}
		again, err := next.put(start.Add(time.Second), "x", e)
		if err != nil || string(again.body) != string(next.body) || !again.held[0].expires.After(next.held[0].expires) {
			t.Fatalf("not idempotent: %v\n%s%s", err, next.body, again.body)
		}
		if end, _ := again.next(); end.Sub(start.Add(time.Second)) > maxTTL {
			t.Fatalf("lasts %v", end.Sub(start))
		}
	})
}
