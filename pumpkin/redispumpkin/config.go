package redispumpkin

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config says where the state is. Client is required.
type Config struct {
	// Client is the connection, which stays the caller's: close it after the Store. It should give up soon and heed its caller's
	// deadline (ContextTimeoutEnabled), or writes at the admin endpoint take as long as it does.
	Client redis.UniversalClient
	// Namespace keeps services that use one Redis apart: letters, digits, '.', '_' and '-'. Empty means "default".
	Namespace string
	// Instance names this instance among those that vote. Empty means a random name.
	Instance string
	// Poll is about how often to look for changes of which no hint has come, 100 ms to 1 min. Zero means 3 s.
	Poll time.Duration
	// Timeout is how long one question to Redis may take, 1 ms to 10 s. Zero means 500 ms.
	Timeout time.Duration
	// SnapshotFile is where the state is kept for a start without Redis, made with mode 0600. Empty means nowhere.
	SnapshotFile string
	// Logger is told when Redis goes away, comes back, or has lost the state. Nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, "default")
	c.Poll = cmp.Or(c.Poll, 3*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 500*time.Millisecond)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Instance == "" {
		c.Instance = rand.Text()[:12]
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("redispumpkin: there is no Client; make one with redis.NewClient")
	case CheckNamespace(c.Namespace) != nil:
		return fmt.Errorf("redispumpkin: Namespace: %w", CheckNamespace(c.Namespace))
	case CheckNamespace(c.Instance) != nil:
		return fmt.Errorf("redispumpkin: Instance: %w", CheckNamespace(c.Instance))
	case c.Poll < 100*time.Millisecond || c.Poll > time.Minute:
		return fmt.Errorf("redispumpkin: Poll is %v; it must be from 100ms to 1m", c.Poll)
	case c.Timeout < time.Millisecond || c.Timeout > 10*time.Second:
		return fmt.Errorf("redispumpkin: Timeout is %v; it must be from 1ms to 10s", c.Timeout)
	}
	return nil
}

// CheckNamespace returns why name cannot be a Namespace or an Instance, or nil.
func CheckNamespace(name string) error {
	const legal = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if name == "" || len(name) > 64 {
		return fmt.Errorf("%q is not 1 to 64 letters, digits, '.', '_' or '-'", name)
	}
	for _, r := range name {
		if !strings.ContainsRune(legal, r) {
			return fmt.Errorf("%q is not 1 to 64 letters, digits, '.', '_' or '-'", name)
		}
	}
	return nil
}
