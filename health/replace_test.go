package health

import (
	"testing"
	"time"
)

func TestAReplacedSamplerIsWarmedAsFarAsTheProcessIs(t *testing.T) {
	for _, row := range []struct{ whole, running, want time.Duration }{
		{0, 10 * time.Second, 50 * time.Second},
		{0, time.Minute, -1},
		{0, time.Hour, -1},
		{5 * time.Second, 2 * time.Second, 3 * time.Second},
		{-1, time.Second, -1},
		{time.Minute, 0, time.Minute},
	} {
		if got := (Config{WarmUp: row.whole}).Warmed(row.running).WarmUp; got != row.want {
			t.Errorf("of %v, after %v: %v left, want %v", row.whole, row.running, got, row.want)
		}
	}
}
