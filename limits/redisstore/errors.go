package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Kind says what a failed call means: whether anything can have been charged, and whose business the trouble is. The same
// word is the metric label and the log field.
type Kind uint8

const (
	// Unknown: the call was sent and no answer came back (a timeout, a connection that was cut). It may have charged, so
	// it is never sent again.
	Unknown Kind = iota
	// NotExecuted: Redis could not be reached or cannot work now (a refused connection, no free connection in the pool,
	// LOADING, MASTERDOWN, CLUSTERDOWN, READONLY, NOREPLICAS, TRYAGAIN, too many clients). Nothing was charged.
	NotExecuted
	// OutOfMemory: Redis is at its maxmemory and may not evict. Nothing was charged.
	OutOfMemory
	// Misconfigured: somebody has to change something (a missing right, a wrong password, a key of another type at our
	// name, a server that lacks a command, an error in the script). Nothing was charged to the key that it is about.
	Misconfigured
	// Cancelled: the context that the call was given ended. Error.Sent tells whether the call was on its way by then.
	Cancelled
	// Malformed: the call itself is wrong (no policy, a negative cost). Redis was not asked.
	Malformed
)

// String returns the word as it appears in metrics and logs.
func (k Kind) String() string {
	switch k {
	case Unknown:
		return "unknown"
	case NotExecuted:
		return "not_executed"
	case OutOfMemory:
		return "out_of_memory"
	case Misconfigured:
		return "misconfigured"
	case Cancelled:
		return "cancelled"
	case Malformed:
		return "malformed"
	}
	return "kind " + fmt.Sprint(uint8(k))
}

// Error is what every method of a Store returns when it could not decide. It wraps what the client said, so that
// errors.Is(err, context.DeadlineExceeded) and the like work.
type Error struct {
	Kind Kind
	// Op is what was tried: "take", "peek" or "refund".
	Op string
	// Sent tells that the call may have reached Redis, and so may have been carried out.
	Sent bool
	// Err is the client's error.
	Err error
}

// Error says what failed, what that means, and for faults of configuration how to mend it.
func (e *Error) Error() string {
	s := "redisstore: " + e.Op + ": " + e.Err.Error()
	switch {
	case e.Kind == Misconfigured:
		return s + hint(e.Err)
	case e.Kind == OutOfMemory:
		return s + " (raise maxmemory, or give quotas a Redis of their own)"
	case e.Sent:
		return s + " (it may have been carried out)"
	}
	return s
}

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.Err }

// MayHaveCharged tells whether the call may have been carried out all the same.
func (e *Error) MayHaveCharged() bool { return e.Sent }

// KindOf returns the Kind of an error that a Store returned, and whether it is one.
func KindOf(err error) (Kind, bool) {
	var e *Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Kind, true
}

// failed makes an Error of what the client returned for a call with ctx.
func failed(ctx context.Context, op string, err error) *Error {
	var left *gaveUp
	if errors.As(err, &left) {
		return &Error{Kind: Cancelled, Op: op, Sent: left.sent, Err: err}
	}
	kind, sent := classify(err)
	if kind == Unknown && ended(ctx) || kind == NotExecuted && isContext(err) {
		kind = Cancelled
	}
	return &Error{Kind: kind, Op: op, Sent: sent, Err: err}
}

// ended reports whether a context is over. Its deadline is the connection's too, which may notice a moment earlier.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// classify tells what an error of the client means, and whether the call may have been carried out.
func classify(err error) (kind Kind, sent bool) {
	var dial *net.OpError
	var dns *net.DNSError
	var own *wrongValue
	switch {
	case errors.As(err, &own):
		return Misconfigured, false
	case redis.IsOOMError(err) || has(err, "OOM "):
		return OutOfMemory, false
	case redis.IsPermissionError(err) || redis.IsAuthError(err) || has(err, "NOPERM", "NOAUTH", "WRONGPASS", "WRONGTYPE", "CROSSSLOT", "DENIED"):
		return Misconfigured, false
	case redis.IsLoadingError(err), redis.IsMasterDownError(err), redis.IsClusterDownError(err), redis.IsReadOnlyError(err),
		redis.IsNoReplicasError(err), redis.IsTryAgainError(err), redis.IsMaxClientsError(err),
		has(err, "NOSCRIPT", "BUSY", "MOVED ", "ASK ", "UNKILLABLE", "MISCONF"):
		return NotExecuted, false
	case isReply(err):
		return Misconfigured, false // unknown commands, script errors, ACLs worded otherwise by proxies
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return NotExecuted, false
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		return NotExecuted, false
	}
	return Unknown, true
}

// isReply reports whether err is an answer of the server.
func isReply(err error) bool {
	var r redis.Error
	return errors.As(err, &r)
}

// has reports whether err is an answer of the server that begins with, or within a script was caused by, one of the words.
func has(err error, words ...string) bool {
	if !isReply(err) {
		return false
	}
	for _, w := range words {
		if redis.HasErrorPrefix(err, w) || strings.Contains(err.Error(), "-"+w) {
			return true
		}
	}
	return false
}

// hint says how to mend a fault of configuration.
func hint(err error) string {
	text := err.Error()
	switch {
	case redis.IsPermissionError(err) || has(err, "NOPERM") || strings.Contains(text, "can't run this command"):
		return "; the user needs ~PREFIX:* +evalsha +eval +get +set +time"
	case redis.IsAuthError(err) || has(err, "NOAUTH", "WRONGPASS"):
		return "; check user and password"
	case has(err, "WRONGTYPE"):
		return "; something else keeps a key of that name: choose another prefix, or delete it"
	case has(err, "CROSSSLOT"):
		return "; this is a cluster: use a cluster client, or set Config.Cluster"
	}
	return ""
}

// wrongValue is a value at one of our keys that we did not write.
type wrongValue struct{ key string }

func (w *wrongValue) Error() string {
	return fmt.Sprintf("the key %q holds what no version of this store has written: choose another prefix, or delete it", w.key)
}

// gaveUp says that a caller's context ended while its decision was in line or on its way.
type gaveUp struct {
	sent bool
	err  error
}

func (g *gaveUp) Error() string {
	if g.sent {
		return "gave up waiting for an answer: " + g.err.Error()
	}
	return "gave up before the call was sent: " + g.err.Error()
}

func (g *gaveUp) Unwrap() error { return g.err }
