package middleware_test

import (
	"testing"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// TestAShadowAnswersAsIfThereWereNothingInFront: a limit, the gate, and the field that tells what they would have done.
func TestAShadowAnswersAsIfThereWereNothingInFront(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		s := open(t, 1, func(c *shed.Config) {
			limited(bucket("per-client", 1))(c)
			c.Shadow = true
		})
		running := must(s.Admit(t.Context(), shed.Request{Anonymous: true}))
		defer running.Done(shed.Ignored)
		srv := w.serve(t, w.wrap(t, middleware.Config{Shedder: s}, ok))
		for _, want := range []string{`"gate";reason=overloaded`, `"per-client";reason=over_limit;t=3600`} {
			res := send(t, srv, "GET", "/")
			allowed(t, res)
			if got := res.Header.Values("Spillway-Shadow"); len(got) != 1 || got[0] != want {
				t.Errorf("Spillway-Shadow: %q, want %q", got, want)
			}
			if got := res.Header.Get("RateLimit"); got != "" {
				t.Errorf("RateLimit %q of a limit that does not hold", got)
			}
		}
	})
}

func must(p shed.Permit, err error) shed.Permit {
	if err != nil {
		panic(err)
	}
	return p
}
