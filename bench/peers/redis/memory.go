package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/redisstore"
)

// entries is how many charges each log remembers whose memory is measured.
const entries = 100

// nameLength is how long the names of keys are in Redis whose memory is measured.
const nameLength = 22

// bytesPerBucket returns what one bucket of a limiter takes of the server's memory, at names of 22 bytes.
func bytesPerBucket(s *server, l limiter, n int) (float64, error) {
	ask, end, err := l.open(s, slow)
	if err != nil {
		return 0, err
	}
	defer end()
	format := "u%07d" // spillway:{u0000042}:ra
	if l.name == peer {
		format = "u%016d" // rate:u0000000000000042
	}
	return s.bytesPerKey(n, func(i int) error {
		allowed, err := ask(fmt.Sprintf(format, i))
		if err == nil && !allowed {
			err = fmt.Errorf("key %d was denied", i)
		}
		return err
	})
}

// bytesPerLog returns what a log of 100 charges takes, at names of 22 bytes. Charges of one log are made one after the other,
// so that each is an entry of its own.
func bytesPerLog(s *server, n int) (float64, error) {
	p, err := limits.NewPolicy("rl", limits.SlidingLog{Quota: limits.PerDay(entries)})
	if err != nil {
		return 0, err
	}
	store, client, err := newStore(s, redisstore.Config{})
	if err != nil {
		return 0, err
	}
	defer client.Close()
	defer store.Close()
	return s.bytesPerKey(n, func(i int) error {
		for range entries {
			d, err := store.Take(forever, time.Time{}, []limits.Charge{{Policy: p, Key: name(i), Cost: 1}})
			if err != nil {
				return err
			}
			if !d.Allowed {
				return fmt.Errorf("log %d is full before it has %d entries", i, entries)
			}
		}
		d, err := store.Take(forever, time.Time{}, []limits.Charge{{Policy: p, Key: name(i), Cost: 1}})
		if err == nil && d.Allowed {
			err = fmt.Errorf("log %d has fewer than %d entries", i, entries)
		}
		return err
	})
}

// bytesPerKey returns how much the server's memory grows for each of n keys that fill makes. It is an error if there are not as
// many keys then, or if their names are not as long as they should be.
// What the server keeps for connections and scripts is there before.
func (s *server) bytesPerKey(n int, fill func(i int) error) (float64, error) {
	if err := fillAll(min(n, 1000), fill); err != nil {
		return 0, err
	}
	if err := s.empty(); err != nil {
		return 0, err
	}
	before, err := s.memory()
	if err != nil {
		return 0, err
	}
	if err := fillAll(n, fill); err != nil {
		return 0, err
	}
	after, err := s.memory()
	if err != nil {
		return 0, err
	}
	if kept, err := s.admin.DBSize(forever).Result(); err != nil || kept != int64(n) {
		return 0, fmt.Errorf("%d keys are kept of %d: %v", kept, n, err)
	}
	if key, err := s.admin.RandomKey(forever).Result(); err != nil || len(key) != nameLength {
		return 0, fmt.Errorf("the key %q has %d bytes, want %d: %v", key, len(key), nameLength, err)
	}
	return (after - before) / float64(n), nil
}

// fillAll makes n keys, several at a time.
func fillAll(n int, fill func(i int) error) error {
	const callers = 16
	errs := make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c; i < n && errs[c] == nil; i += callers {
				errs[c] = fill(i)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
