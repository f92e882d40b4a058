package configfile

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAMisspelledNameIsRecognized(t *testing.T) {
	for wrong, want := range map[string]string{
		"limts": "limits", "limit": "limits", "lmiits": "limits", "Limits": "limits", "clientz": "clients", "qeue": "queue",
		"concurency": "concurrency", "heath": "health", "rate_limits": "", "x": "", "": "", "stuff": "",
	} {
		if got := suggestion(wrong, fileShape.names()); got != want {
			t.Errorf("%q: got %q, want %q", wrong, got, want)
		}
	}
	for _, wrong := range []string{"token-bucket", "tokenBucket", "tokenbucket", "token_buckets", "token_bukcet"} {
		if got := suggestion(wrong, limitShape.names()); got != "token_bucket" {
			t.Errorf("%q: got %q", wrong, got)
		}
	}
}

// TestDistanceIsTheShortestWay compares with the definition, tried out letter by letter.
func TestDistanceIsTheShortestWay(t *testing.T) {
	var shortest func(a, b string) int
	shortest = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		best := min(shortest(a[1:], b), shortest(a, b[1:]), shortest(a[1:], b[1:])) + 1
		if a[0] == b[0] {
			best = min(best, shortest(a[1:], b[1:]))
		}
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			best = min(best, 1+shortest(a[2:], b[2:]))
		}
		return best
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[abc]{0,6}`).Draw(t, "a"), rapid.StringMatching(`[abc]{0,6}`).Draw(t, "b")
		if got, want := distance(a, b), shortest(a, b); got != want {
			t.Fatalf("distance(%q, %q) is %d, want %d", a, b, got, want)
		}
	})
}

func TestNoKeyIsListedTwice(t *testing.T) {
	var walk func(s *shape)
	walk = func(s *shape) {
		seen := map[string]bool{}
		for _, k := range s.keys {
			if seen[k.name] {
				t.Errorf("%s is listed twice", k.name)
			}
			seen[k.name] = true
			if k.in != nil {
				walk(k.in)
			}
		}
	}
	walk(&fileShape)
}
