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
	// NoCoalescing sends a call of its own for each decision. Otherwise decisions about the same balances that come while
	// a call about them is on its way go together in the next one, which leaves beside it where a crowd waits, and are granted
	// in the order in which they came. Nobody waits for others to come.
	NoCoalescing bool
	// NoPipelining sends each call as it comes. Otherwise those that come while some calls are on their way go together in
	// one message.
	NoPipelining bool
}

// Store is a limits.Store in Redis. It has no time budget of its own: it takes as long as its client's options and the
// caller's context allow. All methods return an *Error when they could not decide.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	cluster bool

	rules     sync.Map // *limits.Policy → *rule
	ruleCount atomic.Int64

	batcher *batcher

	scattered atomic.Bool // it has turned out that keys live on several servers, though the client does not look like it

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
	s := &Store{client: client, prefix: config.Prefix, cluster: config.Cluster}
	s.batcher = newBatcher(s, !config.NoCoalescing, !config.NoPipelining)
	return s, nil
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
func (s *Store) Take(ctx context.Context, now time.Time, charges []limits.Charge) (d limits.Decision, err error) {
	err = s.decide(ctx, "take", now, charges, limits.Take, &d)
	return d, err
}

// Peek implements limits.Store. The time is the server's, whatever now says.
func (s *Store) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (d limits.Decision, err error) {
	err = s.decide(ctx, "peek", now, charges, limits.Look, &d)
	return d, err
}

// Close waits for the calls that are on their way for several callers at once. It does not close the client. A closed store
// still works, and sends each call alone.
func (s *Store) Close() error {
	s.batcher.close()
	return nil
}

// decide answers a Take or a Peek in d, which is empty and stays so if there is an error.
func (s *Store) decide(ctx context.Context, op string, now time.Time, charges []limits.Charge, effect limits.Effect, d *limits.Decision) error {
	if err := ctx.Err(); err != nil {
		return &Error{Kind: Cancelled, Op: op, Err: err}
	}
	q, err := s.ask(now, charges)
	if err != nil {
		return &Error{Kind: Malformed, Op: op, Err: err}
	}
	switch {
	case len(charges) == 0:
		*d = limits.Decision{Allowed: true, Source: limits.FromRedis}
		return nil
	case s.cluster && !q.together():
		all, err := s.decideApart(ctx, now, charges, effect)
		if err != nil {
			return failed(ctx, op, err)
		}
		*d = all
		return nil
	}
	if err := s.batcher.ask(ctx, q, effect == limits.Take); err != nil {
		return failed(ctx, op, err)
	}
	*d = q.d
	q.free()
	return nil
}

// decideOne asks about q and nothing else.
func (s *Store) decideOne(ctx context.Context, q *question, take bool) error {
	c := query{rows: []*question{q}, take: take}
	return c.decide(ctx, s)
}
