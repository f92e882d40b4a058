package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spillway-go/spillway/limits"
)

// DefaultPrefix is the Prefix of a Config that names none.
const DefaultPrefix = "spillway"

// Config configures a Store. The zero value is good.
type Config struct {
	// Prefix begins the names of all keys; "" means DefaultPrefix. Stores that share quotas share it. It is printable ASCII
	// without braces.
	Prefix string
	// Cluster says that keys live on several servers, so that charges of different clients take a call each. It is found
	// out for the clients of go-redis; set it for a client of your own around one.
	Cluster bool
}

// Store is a limits.Store in Redis. It has no time budget of its own: it takes as long as its client's options and the
// caller's context allow. All methods return an *Error when they could not decide.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	cluster bool

	rules     sync.Map // *limits.Policy → *rule
	ruleCount atomic.Int64

	// clock, if set, is the time that the scripts are told, for tests that play with time.
	clock func(now time.Time) string
}

var _ limits.Store = (*Store)(nil)

// New returns a store that uses a client of the caller's, whose options it does not change and which it does not close. It
// does not ask Redis anything. It refuses a missing client and an impossible prefix.
func New(client redis.UniversalClient, config Config) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: there is no client; make one with Open or redis.NewUniversalClient")
	}
	if config.Prefix == "" {
		config.Prefix = DefaultPrefix
	}
	if err := checkPrefix(config.Prefix); err != nil {
		return nil, fmt.Errorf("redisstore: Config.Prefix %q: %w", config.Prefix, err)
	}
	switch client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		config.Cluster = true
	}
	return &Store{client: client, prefix: config.Prefix, cluster: config.Cluster}, nil
}

func checkPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") {
		return errors.New("braces would put all keys on one server of a cluster; leave them out")
	}
	for _, c := range []byte(prefix) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("it contains the byte %#02x; use printable ASCII without spaces", c)
		}
	}
	return nil
}

// Take implements limits.Store. The time is the server's, whatever now says.
func (s *Store) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return s.decide(ctx, "take", now, charges, limits.Take)
}

// Peek implements limits.Store. The time is the server's, whatever now says.
func (s *Store) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return s.decide(ctx, "peek", now, charges, limits.Look)
}

// Close ends what the store has running. It does not close the client.
func (s *Store) Close() error { return nil }

// decide answers a Take or a Peek.
func (s *Store) decide(ctx context.Context, op string, now time.Time, charges []limits.Charge, effect limits.Effect) (limits.Decision, error) {
	if err := ctx.Err(); err != nil {
		return limits.Decision{}, &Error{Kind: Cancelled, Op: op, Err: err}
	}
	q, err := s.ask(charges)
	if err != nil {
		return limits.Decision{}, &Error{Kind: Malformed, Op: op, Err: err}
	}
	d := limits.Decision{Source: limits.FromRedis}
	switch {
	case len(charges) == 0:
		d.Allowed = true
	case s.cluster && !q.together():
		if d, err = s.decideApart(ctx, now, charges, effect); err != nil {
			return limits.Decision{}, failed(ctx, op, err)
		}
	default:
		a, err := s.send(ctx, q, now, effect == limits.Take)
		if err == nil {
			err = a.decide(q, effect, &d)
		}
		if err != nil {
			return limits.Decision{}, failed(ctx, op, err)
		}
	}
	return d, nil
}

// told returns the time that the script is told.
func (s *Store) told(now time.Time) string {
	if s.clock == nil {
		return ""
	}
	return s.clock(now)
}

// question is one decision on its way to the script.
type question struct {
	charges []limits.Charge
	of      []int // for each charge the index of its balance
	first   []int // for each balance the first of its charges
	rules   []*rule
	debts   bool // all rules are debts
}

var errInProcess = errors.New("the rule counts what is in flight; keep it in the process, in a limits.Memory")

// ask checks charges and finds out which balances they are about.
func (s *Store) ask(charges []limits.Charge) (*question, error) {
	q := &question{charges: charges, of: make([]int, len(charges)), debts: true}
	for i := range charges {
		c := &charges[i]
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("charge %d: %w", i, err)
		}
		at := -1
		for k, j := range q.first {
			if b := &charges[j]; b.Policy.Name() == c.Policy.Name() {
				if b.Policy != c.Policy && b.Policy.Rule() != c.Policy.Rule() {
					return nil, fmt.Errorf("charges %d and %d: one call cannot hold policy %q with two different rules; use the newer for both", j, i, c.Policy.Name())
				}
				if b.Key == c.Key {
					at = k
				}
			}
		}
		if at < 0 {
			r := s.ruleOf(c.Policy)
			if r.fault != nil {
				return nil, fmt.Errorf("charge %d: policy %q: %w", i, c.Policy.Name(), r.fault)
			}
			at = len(q.first)
			q.first = append(q.first, i)
			q.rules = append(q.rules, r)
			q.debts = q.debts && r.debt
		}
		q.of[i] = at
	}
	return q, nil
}

// together reports whether all balances are one client's.
func (q *question) together() bool {
	for _, i := range q.first[1:] {
		if q.charges[i].Key != q.charges[0].Key {
			return false
		}
	}
	return true
}
