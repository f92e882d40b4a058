package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

//go:embed ways.yaml
var waysFile string

// What ways.yaml says, in requests and requests a second; and how long a way is played.
const (
	capacity, rate = 2000, 2000
	mergeEvery     = 200 * time.Millisecond
	playFor        = 2 * time.Second
)

// runWays lets a crowd want one limit at all three instances at once, shared in each of the three ways.
func runWays(ctx context.Context, out io.Writer, pause time.Duration) error {
	redis, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.remove()
	s := &story{ctx: ctx, out: out}
	s.say("One limit for everybody: %d at once and %d/s. A crowd takes what it gets at three instances, for %v.", capacity, rate, playFor)
	for _, way := range []string{"exact", "lease", "async"} {
		if err := s.playWay(way, redis.addr); err != nil {
			return err
		}
		s.rest(pause)
	}
	return ctx.Err()
}

// playWay plays one of them, on a balance of its own. Who is refused rests for a moment.
func (s *story) playWay(way, redisAddr string) error {
	defer s.close()
	if err := s.start(strings.ReplaceAll(waysFile, "WAY", way), redisAddr); err != nil {
		return err
	}
	begin := time.Now()
	over, stop := context.WithTimeout(s.ctx, playFor)
	defer stop()
	var served, all atomic.Int64
	var crowd sync.WaitGroup
	for _, a := range s.apps {
		for range 4 {
			crowd.Go(func() {
				for over.Err() == nil {
					status, err := s.ask(a, "somebody")
					if err != nil {
						return
					}
					all.Add(1)
					if status == http.StatusOK {
						served.Add(1)
						continue
					}
					s.rest(5 * time.Millisecond)
				}
			})
		}
	}
	crowd.Wait()
	most := capacity + int64(rate*time.Since(begin)/time.Second) + 1
	if way == "async" { // what three instances can admit that have not heard of each other; merges may come late by twice the time
		most += 3 * (capacity + int64(2*rate*3*mergeEvery/time.Second))
	}
	s.say("   sharing: %-5s  %5d served, at most %d may be; Redis decided %d of %d", way, served.Load(), most, s.decisions()["redis"], all.Load())
	if s.err == nil && served.Load() > most {
		s.err = fmt.Errorf("sharing: %s admitted %d, more than %d", way, served.Load(), most)
	}
	return s.err
}
