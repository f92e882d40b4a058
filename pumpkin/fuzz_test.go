package pumpkin

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// FuzzAdminOrders sends any body to every endpoint that takes one. It is made or refused with a reason; what is refused
// changes nothing, what is made leads to a small document that the next poll shows.
func FuzzAdminOrders(f *testing.F) {
	for _, s := range []string{
		body(""), body(`,"starts_at":"2030-01-01T00:00:00Z"`), body(`,"features":{"*":{"off":1}}`),
		`{"on":true,"template":"site-down","ttl":"30m","reason":"fire"}`, `{"on":false,"reason":"over"}`, `{"on":true,"template":"degraded","reason":"\u202e"}`,
		`{"ttl":"2h","reason":"false alarm"}`, `{"ttl":"25h","reason":"r"}`, `{"reason":null}`, `{"on":true,"on":false}`, `{`, ``, `[]`, `{}{}`,
	} {
		for path := range byte(3) {
			f.Add([]byte(s), path)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, path byte) {
		p := open(t, Config{})
		put(t, p, "before", entry("before"))
		before := p.current.Load().board
		target := []string{"/items/x?confirm=all", "/mode", "/force_off/x"}[path%3]
		w := call(p, "PUT", target, string(data), "Content-Type", "application/json")
		after := p.current.Load().board
		switch {
		case w.Code == 200:
			if _, ok := after.find("before"); !ok || len(after.body) > maxDocument {
				t.Fatalf("%s", after.body)
			}
			if r := p.Audit(1)[0]; r.Applied != "yes" || r.Actor != "admin" || r.Reason == "" && r.Action != "mode_off" {
				t.Fatalf("audited as %+v", r)
			}
		case w.Code >= 400 && w.Code < 500:
			var refusal problem
			if err := json.Unmarshal(w.Body.Bytes(), &refusal); err != nil || refusal.Reason == "" || refusal.Detail == "" {
				t.Fatalf("%v: %s", err, w.Body)
			}
			if string(after.body) != string(before.body) || len(after.waiting)+len(after.holds) != 0 {
				t.Fatalf("refused, but changed: %s", after.body)
			}
			if r := p.Audit(1)[0]; r.Applied != "no" || r.Refused != refusal.Reason {
				t.Fatalf("audited as %+v", r)
			}
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}

// FuzzBreakGlass holds the file to the same bounds as everybody else.
func FuzzBreakGlass(f *testing.F) {
	for _, s := range []string{
		`{"severity":"critical","message":{"en":"x"},"features":{"*":{"off":1}}}`, `{"items":{}}`, `{"template":"site-down","ttl":"1h"}`,
		`{"items":{"a":{"template":"degraded"},"b":{"severity":"minor","message":{"en":"b"}}}}`, `{"items":{"a":{"items":{}}}}`, `{"items":7}`, `{`, ``,
	} {
		f.Add([]byte(s))
	}
	p := open(f, Config{})
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := p.parseGlass(data, start, start.Add(-time.Minute))
		if err != nil {
			if _, ok := errors.AsType[*Refusal](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		b := newBoard(testEpoch, "en", 15, 60).overrule(&override{items})
		if len(b.body) > maxDocument || len(items) > maxItems {
			t.Fatalf("%s", b.body)
		}
		for _, h := range items {
			if !isName(h.notice.ID) || h.notice.Severity.rank() < 0 || h.reason == "" || h.origin != FromFile {
				t.Fatalf("%+v", h)
			}
		}
	})
}

// FuzzTokens: what a token file is taken for never lets in more than it says.
func FuzzTokens(f *testing.F) {
	for _, s := range []string{
		testToken, testToken + "\n", "ada: " + testToken + "\nbob read: x" + testToken, "ada: sha256:" + strings.Repeat("0a", 32),
		"# c\n\n", ": x", "a:b", "a: b: " + testToken, "\r\n", "read: " + testToken,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		tokens, err := parseTokens(content)
		if err != nil {
			for line := range strings.Lines(content) {
				if line = strings.TrimSpace(line); len(line) >= minToken && strings.Contains(err.Error(), line) {
					t.Fatalf("the error shows a line: %v", err)
				}
			}
			return
		}
		if len(tokens) == 0 || len(tokens) > maxTokens {
			t.Fatalf("%d tokens", len(tokens))
		}
		if _, err := New(Config{Tokens: tokens}); err != nil {
			t.Fatalf("a token that was read is refused: %v", err)
		}
	})
}
