package pumpkin

import (
	"context"
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

// guard knows the digests of the tokens, never a token.
type guard struct {
	tokens   []Token
	failures atomic.Uint64

	mu sync.Mutex
	// free is when the failures so far will have been paid for, at one per failEvery.
	free time.Time
}

// bearer returns the token that the request bears. Digests have one length and all of them are compared, so the time tells
// nothing, neither how long a token is nor which one was nearly right.
func (g *guard) bearer(r *http.Request) (Token, bool) {
	lines := r.Header["Authorization"]
	if len(lines) != 1 { // two of them: what a proxy checked may not be what we would
		return Token{}, false
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	digest := sha256.Sum256([]byte(strings.Trim(token, " ")))
	found := -1
	for i := range g.tokens {
		same := subtle.ConstantTimeCompare(digest[:], g.tokens[i].Digest[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 || !strings.EqualFold(scheme, "Bearer") {
		return Token{}, false
	}
	return g.tokens[found], true
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

// actorKey is where a request's context keeps who bears its token.
type actorKey struct{}

// actorOf returns who sent a request that was let through.
func actorOf(r *http.Request) string {
	name, _ := r.Context().Value(actorKey{}).(string)
	return name
}

// Authorize lets through to next who bears an admin token, and answers the others 401 (429 when they are many); 403 when a
// token that may only read would do more than GET or HEAD. It is what guards Admin, for other handlers on the same listener.
func (p *Pumpkin) Authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := p.guard.bearer(r)
		switch {
		case !ok:
			p.refuseBearer(w, r)
		case token.ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead:
			leaveBody(w, r)
			refusal := refuse(ReadOnly, "the token of %s may only read", token.Name)
			p.audit.add(Record{Actor: token.Name, Remote: r.RemoteAddr, Action: strings.ToLower(r.Method), ID: shortPath(r),
				Rev: p.current.Load().board.rev}.refused(refusal))
			writeProblem(w, refusal)
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, token.Name)))
		}
	})
}

// refuseBearer answers who has no token.
func (p *Pumpkin) refuseBearer(w http.ResponseWriter, r *http.Request) {
	leaveBody(w, r)
	w.Header().Set("WWW-Authenticate", `Bearer realm="spillway admin"`)
	if wait := p.guard.failed(time.Now()); wait > 0 {
		w.Header().Set("Retry-After", wholeSeconds(wait))
		writeProblem(w, refuse(TooManyFailures, "too many requests with a wrong token; a right one is let in at any time"))
		return
	}
	refusal := refuse(Unauthorized, "send the admin token: Authorization: Bearer TOKEN")
	p.auditStranger(r, "unauthorized", refusal)
	p.log.Warn("pumpkin: admin request refused: no or wrong token", slog.String("remote", r.RemoteAddr),
		slog.String("method", r.Method), slog.String("path", r.URL.Path))
	writeProblem(w, refusal)
}

// auditStranger records an attempt by somebody without a name.
func (p *Pumpkin) auditStranger(r *http.Request, action string, refusal *Refusal) {
	record := Record{Remote: r.RemoteAddr, Action: action, ID: shortPath(r), Rev: p.current.Load().board.rev}.refused(refusal)
	record.Detail = r.Method
	p.audit.add(record)
}

// shortPath is what was asked for, as much of it as a record should hold of a stranger's words.
func shortPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	return path[:min(len(path), 2*maxName)]
}
