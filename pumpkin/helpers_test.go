package pumpkin

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testToken = "correct-horse-battery-staple-0123456789"
	testEpoch = "01JTESTTESTTESTTESTTESTTES"
)

// open makes a Pumpkin of the test epoch that is closed when the test ends.
func open(t testing.TB, c Config) *Pumpkin {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Token == "" {
		c.Token = testToken
	}
	p, err := newPumpkin(c, testEpoch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// entry is a legal one.
func entry(message string) Entry {
	return Entry{Severity: Minor, Message: map[string]string{"en": message}, Reason: "test"}
}

// off is an entry that switches features off for a share of clients.
func off(message string, share float64, features ...string) Entry {
	e := entry(message)
	e.Features = map[string]Feature{}
	for _, f := range features {
		e.Features[f] = Feature{Off: share}
	}
	return e
}

// put writes in the name of the test.
func put(t testing.TB, p *Pumpkin, id string, e Entry) {
	t.Helper()
	if err := p.Put("test", id, e); err != nil {
		t.Fatal(err)
	}
}

// poll asks for the document as a client would.
func poll(p *Pumpkin, method string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/pumpkin.json", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.Public().ServeHTTP(w, r)
	return w
}

// read decodes the document that a poll shows.
func read(t testing.TB, p *Pumpkin) Document {
	t.Helper()
	var d Document
	if err := json.Unmarshal(poll(p, http.MethodGet).Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// call asks the admin endpoint, with the right token and JSON unless header says otherwise.
func call(p *Pumpkin, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:9180"+target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testToken)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.Admin().ServeHTTP(w, r)
	return w
}

// answers fails the test unless w has the status and, if any, the reason.
func answers(t testing.TB, w *httptest.ResponseRecorder, status int, reason Reason) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	if reason == "" {
		return
	}
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("problem document: %v: %s", err, w.Body)
	}
	if p.Reason != reason || p.Status != status || p.Detail == "" {
		t.Fatalf("problem %+v, want reason %q with a detail", p, reason)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("Content-Type %q", got)
	}
}
