package pumpkin

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Wrong tokens are answered 401 as long as there are few: failBurst at once, then one in failEvery. Beyond that they are
// answered 429 and no longer logged. A right token is looked at first and knows nothing of this.
const (
	failBurst = 20
	failEvery = time.Second
)

// guard knows the digest of the token, never the token.
type guard struct {
	digest   [sha256.Size]byte
	nobody   bool // no token is configured
	failures atomic.Uint64

	mu sync.Mutex
	// free is when the failures so far will have been paid for, at one per failEvery.
	free time.Time
}

func newGuard(token string) guard {
	return guard{digest: sha256.Sum256([]byte(token)), nobody: token == ""}
}

// admits reports whether the request bears the token. Digests have one length, so the comparison's time tells nothing,
// not even how long the token is.
func (g *guard) admits(r *http.Request) bool {
	lines := r.Header["Authorization"]
	if len(lines) != 1 { // two of them: what a proxy checked may not be what we would
		return false
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	digest := sha256.Sum256([]byte(strings.Trim(token, " ")))
	same := subtle.ConstantTimeCompare(digest[:], g.digest[:]) == 1
	return same && strings.EqualFold(scheme, "Bearer") && !g.nobody
}

// failed counts a failure and returns how long to stay away; 0 while failures are few.
func (g *guard) failed(now time.Time) time.Duration {
	g.failures.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free.Before(now) {
		g.free = now
	}
	if wait := g.free.Add(failEvery).Sub(now) - failBurst*failEvery; wait > 0 {
		return wait
	}
	g.free = g.free.Add(failEvery)
	return 0
}

// Authorize lets through to next who bears the admin token, and answers the others 401 (429 when they are many). It is what
// guards Admin, for other handlers on the same listener.
func (p *Pumpkin) Authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.guard.admits(r) {
			next.ServeHTTP(w, r)
			return
		}
		leaveBody(w, r)
		w.Header().Set("WWW-Authenticate", `Bearer realm="spillway admin"`)
		if wait := p.guard.failed(time.Now()); wait > 0 {
			w.Header().Set("Retry-After", wholeSeconds(wait))
			writeProblem(w, refuse(TooManyFailures, "too many requests with a wrong token; a right one is let in at any time"))
			return
		}
		p.log.Warn("pumpkin: admin request refused: no or wrong token", slog.String("remote", r.RemoteAddr),
			slog.String("method", r.Method), slog.String("path", r.URL.Path))
		writeProblem(w, refuse(Unauthorized, "send the admin token: Authorization: Bearer TOKEN"))
	})
}
