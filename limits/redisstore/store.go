package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	return limits.Decision{}, errNotYet
}

// Peek implements limits.Store.
func (s *Store) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return limits.Decision{}, errNotYet
}

// Refund implements limits.Store.
func (s *Store) Refund(ctx context.Context, now time.Time, d limits.Decision) error { return errNotYet }

// Close ends what the store has running. It does not close the client.
func (s *Store) Close() error { return nil }

var errNotYet = errors.New("redisstore: not there yet")
