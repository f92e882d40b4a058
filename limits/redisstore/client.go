package redisstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DefaultTimeout is the Timeout of Options that name none.
const DefaultTimeout = 50 * time.Millisecond

// Options are what Open adds to a URL. The zero value is good.
type Options struct {
	// Timeout bounds each read, each write and the wait for a free connection; 0 means DefaultTimeout. A connection may
	// take four times as long to be made.
	Timeout time.Duration
	// PoolSize is how many connections there may be to each server; 0 means 32.
	PoolSize int
	// Username and Password, if not empty, replace those in the URL, so that these need not be kept where the URL is.
	Username, Password string

	lazy bool // opens no connections before they are needed
}

// Open returns a client whose options suit decisions: it gives up soon, minds its caller's deadline, sends nothing twice, and
// notices soon when a cluster has changed. Close it when the store is no longer used. Nothing is sent yet, so an address
// where nobody listens is no error.
//
//	redis://user:password@host:6379/0                     one server; rediss:// with TLS, unix:///path for a socket
//	redis+cluster://host:6379?addr=host2:6379             a cluster, from any of its servers
//	redis+sentinel://host:26379/0?master_name=mymaster    the master that sentinels name; more of them with addr=
//
// Parameters of the URL are those of go-redis (read_timeout=80ms, pool_size=64) and beat Options. With the first address of
// sentinels the logger of go-redis, which is one for the program, becomes one that writes the same to stderr and does not repeat
// itself within a minute; a program that wants another sets it afterwards with redis.SetLogger.
func Open(address string, o Options) (redis.UniversalClient, error) {
	client, err := o.open(address)
	if err != nil {
		return nil, fmt.Errorf("redisstore: the address %s: %w", redacted(address), err)
	}
	dialAnew(client)
	return client, nil
}

func (o Options) open(address string) (redis.UniversalClient, error) {
	if o.Timeout < 0 || o.PoolSize < 0 {
		return nil, errors.New("a timeout or pool size is negative; use 0 for the default")
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return nil, errors.New("there is no scheme; write redis://HOST:PORT/0")
	}
	base, kind, _ := strings.Cut(scheme, "+")
	if u, err := url.Parse(address); err == nil && strings.Contains(u.Host, ",") { // it would be looked up as one name
		return nil, errors.New("there are several hosts before the path; write the first there, and each other one as a parameter addr=HOST:PORT")
	}
	switch kind {
	case "":
		p, err := redis.ParseURL(address)
		if err != nil {
			return nil, plainly(err)
		}
		o.tune(tuned{&p.Username, &p.Password, &p.DialTimeout, &p.ReadTimeout, &p.WriteTimeout, &p.PoolTimeout, &p.PoolSize, &p.MinIdleConns, &p.MaxRetries, &p.DialerRetries})
		p.ContextTimeoutEnabled, p.DisableIdentity, p.MaintNotificationsConfig = true, true, quiet()
		return redis.NewClient(p), nil
	case "cluster":
		p, err := redis.ParseClusterURL(base + "://" + rest)
		if err != nil {
			return nil, plainly(err)
		}
		o.tune(tuned{&p.Username, &p.Password, &p.DialTimeout, &p.ReadTimeout, &p.WriteTimeout, &p.PoolTimeout, &p.PoolSize, &p.MinIdleConns, &p.MaxRetries, &p.DialerRetries})
		p.ContextTimeoutEnabled, p.DisableIdentity, p.MaintNotificationsConfig = true, true, quiet()
		p.ClusterStateReloadInterval = time.Second
		return redis.NewClusterClient(p), nil
	case "sentinel":
		p, err := redis.ParseFailoverURL(base + "://" + rest)
		if err != nil {
			return nil, plainly(err)
		}
		if p.MasterName == "" {
			return nil, errors.New("sentinels need ?master_name=NAME")
		}
		o.tune(tuned{&p.Username, &p.Password, &p.DialTimeout, &p.ReadTimeout, &p.WriteTimeout, &p.PoolTimeout, &p.PoolSize, &p.MinIdleConns, &p.MaxRetries, &p.DialerRetries})
		p.ContextTimeoutEnabled, p.DisableIdentity = true, true
		quietSentinels()
		return redis.NewFailoverClient(p), nil
	}
	return nil, fmt.Errorf("the scheme %q is unknown; use redis, rediss, unix, redis+cluster or redis+sentinel", scheme)
}

// quiet keeps the client from asking a server to announce its maintenance: few servers can, and the rights would have to be
// wider.
func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// tuned are the options that all kinds of client have.
type tuned struct {
	username, password                            *string
	dial, read, write, pool                       *time.Duration
	poolSize, minIdle, maxRetries, dialerAttempts *int
}

// tune sets what the URL has left open.
func (o Options) tune(t tuned) {
	timeout := o.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	size := o.PoolSize
	if size == 0 {
		size = 32
	}
	if o.Username != "" {
		*t.username = o.Username
	}
	if o.Password != "" {
		*t.password = o.Password
	}
	fill(t.dial, 4*timeout)
	fill(t.read, timeout)
	fill(t.write, timeout)
	fill(t.pool, timeout)
	fill(t.poolSize, size)
	if !o.lazy {
		fill(t.minIdle, 4)
	}
	fill(t.maxRetries, -1)
	fill(t.dialerAttempts, 1)
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// plainly drops what an error of url.Parse quotes, for that may hold a password.
func plainly(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// redacted returns an address without its password.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		scheme, _, _ := strings.Cut(address, "://")
		return scheme + "://..."
	}
	return u.Redacted()
}
