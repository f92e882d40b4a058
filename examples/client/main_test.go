package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/middleware"
)

// Whatever the pace of the machine: nobody is refused by a service whose wishes are honoured, for all may wait long enough.
func TestEveryCallIsServedInTheEnd(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, "", 16, middleware.TransportConfig{Parallel: 2, Wait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "200 OK"); n != 16 {
		t.Errorf("%d of 16 are served:\n%s", n, &out)
	}
}

func TestWhatIsOffIsNotCalled(t *testing.T) {
	called := false
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer service.Close()
	var out bytes.Buffer
	cfg := middleware.TransportConfig{Features: off{}, Feature: func(*http.Request) string { return "reports" }}
	if err := run(t.Context(), &out, service.URL, 2, cfg); err != nil {
		t.Fatal(err)
	}
	if called || strings.Count(out.String(), "not made: feature_off") != 2 {
		t.Errorf("called %v:\n%s", called, &out)
	}
}

// off says that everything is.
type off struct{}

func (off) Blocked(string) bool { return true }

func TestFlagsThatMeanNothingAreRefused(t *testing.T) {
	for _, row := range []struct{ args, says string }{
		{"extra", "unexpected argument"},
		{"-calls 0", "above 0"},
		{"-parallel -1", "above 0"},
		{"-wait 0s", "above 0"},
		{"-wait 5", "invalid value"},
		{"-feature reports", "without -pumpkin"},
		{"-url 127.0.0.1:8080", "write it like"},
		{"-url http://", "write it like"},
		{"-nonsense", "not defined"},
	} {
		if _, err := parse(strings.Fields(row.args)); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.args, err, row.says)
		}
	}
	if o, err := parse([]string{"-url", "https://h/x", "-feature", "f", "-pumpkin", "http://h/pumpkin.json"}); err != nil || o.calls != 25 || o.parallel != 4 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestCallsWithoutAnAnswerAreAnError(t *testing.T) {
	nobody := httptest.NewServer(nil)
	nobody.Close()
	var out bytes.Buffer
	if err := run(t.Context(), &out, nobody.URL, 2, middleware.TransportConfig{Retries: -1}); err == nil || err.Error() != "2 of 2 calls had no answer" {
		t.Errorf("%v:\n%s", err, &out)
	}
}
