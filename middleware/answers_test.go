package middleware_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// What the shedder's configuration says about answers holds, changes with a reload, and shows nothing that the program hides.
func TestAnswersAreWhatTheConfigurationSays(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		var cfg shed.Config
		s := open(t, 10, func(c *shed.Config) { c.Limits = []shed.Limit{bucket("per-client", 1)}; cfg = *c })
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		hiding := w.serve(t, w.wrap(t, middleware.Config{Shedder: s, HideRateLimit: true, NoHTML: true}, ok))
		allowed(t, send(t, srv, "GET", "/"))
		for _, row := range []struct {
			answers shed.Answers
			fields  []string // that are there, of all that could be
			html    bool
		}{
			{shed.Answers{}, []string{"RateLimit", "RateLimit-Policy"}, true},
			{shed.Answers{HideRateLimit: true, Legacy: "x_ratelimit_epoch"}, nil, true},
			{shed.Answers{NoHTML: true, Legacy: "x_ratelimit_delta"}, []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Reset"}, false},
			{shed.Answers{Legacy: "ratelimit_delta"}, []string{"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Reset"}, true},
		} {
			cfg.Answers = row.answers
			if _, err := s.Reload(cfg); err != nil {
				t.Fatal(err)
			}
			res := send(t, srv, "GET", "/", "Accept", browser)
			if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
				t.Fatalf("%+v: status %d, fields %v", row.answers, res.StatusCode, res.Header)
			}
			if html := strings.HasPrefix(res.Header.Get("Content-Type"), "text/html"); html != row.html {
				t.Errorf("%+v: Content-Type %q", row.answers, res.Header.Get("Content-Type"))
			}
			for _, field := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Reset", "RateLimit-Limit", "RateLimit-Reset"} {
				if there := res.Header.Get(field) != ""; there != slices.Contains(row.fields, field) {
					t.Errorf("%+v: %s there: %t", row.answers, field, there)
				}
			}
			hidden := send(t, hiding, "GET", "/", "Accept", browser)
			refused(t, hidden, http.StatusTooManyRequests, shed.OverLimit)
			if hidden.Header.Get("RateLimit") != "" || hidden.Header.Get("X-RateLimit-Limit") != "" {
				t.Errorf("%+v: what the program hides is shown: %v", row.answers, hidden.Header)
			}
		}
		cfg.Answers.Legacy = "epoch"
		if _, err := s.Reload(cfg); err == nil || !strings.Contains(err.Error(), `answers.legacy is "epoch"`) {
			t.Errorf("a word that is none: %v", err)
		}
	})
}
