package redisstore

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.M(m)) }

// prefixes gives each test keys of its own.
var prefixes atomic.Int64

// open returns a store whose scripts are told the time of each call.
func open(t testing.TB, client redis.UniversalClient, config Config) *Store {
	t.Helper()
	config.Prefix = fmt.Sprint("t", prefixes.Add(1))
	s, err := New(client, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// played makes a store take the time of each call from its caller, as a Memory does.
func played(s *Store) *Store {
	s.clock = func(now time.Time) string { return strconv.FormatInt(max(now.UnixMicro(), 0), 10) }
	return s
}

func TestStoreKeepsThePromises(t *testing.T) {
	client := redistest.Shared(t)
	storetest.Run(t, func(t *testing.T) limits.Store { return played(open(t, client, Config{})) })
}
