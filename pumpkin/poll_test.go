package pumpkin

import (
	"net/http/httptest"
	"testing"
	"time"
)

func TestThePaceOfPollsCanBeChangedWhileRunning(t *testing.T) {
	p := open(t, Config{PollAfter: 20 * time.Second})
	if err := p.Put("me", "a", Entry{Severity: Major, Message: map[string]string{"en": "x"}, Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	before := p.Document()
	if err := p.SetPoll(5*time.Second, 0); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.Public().ServeHTTP(w, httptest.NewRequest("GET", "/pumpkin.json", nil))
	after := p.Document()
	if after.PollAfter != 5 || after.Rev != before.Rev+1 || len(after.Items) != 1 || after.Items[0].NoticeRev != before.Items[0].NoticeRev {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if got := w.Header().Get("Cache-Control"); got != "public, max-age=3, stale-if-error=86400" {
		t.Errorf("Cache-Control %q: a client would hit its own cache", got)
	}
	if err := p.SetPoll(5*time.Second, 0); err != nil || p.Document().Rev != after.Rev {
		t.Errorf("the same again is no news: rev %d, %v", p.Document().Rev, err)
	}
	if err := p.SetPoll(time.Second, 0); err == nil || p.Document().Rev != after.Rev {
		t.Errorf("a pace that nobody keeps to was taken: %v", err)
	}
	if _, err := p.Clear("me", "a"); err != nil || p.Document().PollAfter != 60 {
		t.Errorf("idle: %+v, %v", p.Document(), err)
	}
}
