package redisstore

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheSameIsSaidOnceAMinute, and what is new at once.
func TestTheSameIsSaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		l := &terse{say: func(text string) { said = append(said, text) }}
		for range 10 * 60 * 3 { // three minutes
			l.Printf(ctx, "no %s at %d", "answer", 7)
			l.Printf(ctx, "refused")
			time.Sleep(100 * time.Millisecond)
		}
		want := []string{"no answer at 7", "refused", "no answer at 7", "refused", "no answer at 7", "refused"}
		if !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
		l.Printf(ctx, "no %s at %d", "answer", 8)
		l.Printf(ctx, "no %s at %d", "answer", 7)
		if got := said[len(want):]; !slices.Equal(got, []string{"no answer at 8", "no answer at 7"}) {
			t.Errorf("of what is new %q was said", got)
		}
	})
}
