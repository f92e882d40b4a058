package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// story lets clients hop between the apps and says what comes of it. After an error or when ctx is over it does nothing more.
type story struct {
	ctx  context.Context
	out  io.Writer
	apps []*app
	err  error
}

// start starts three apps from one file.
func (s *story) start(file, redisAddr string) error {
	for i := range 3 {
		a, err := startApp(i+1, file, redisAddr)
		if err != nil {
			return err
		}
		s.apps = append(s.apps, a)
	}
	return nil
}

func (s *story) close() {
	for _, a := range s.apps {
		a.close()
	}
	s.apps = nil
}

func (s *story) say(format string, args ...any) {
	if s.going() {
		fmt.Fprintf(s.out, format+"\n", args...)
	}
}

func (s *story) act(title string) { s.say("\n== %s", title) }

func (s *story) going() bool {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	return s.err == nil
}

// rest leaves time to read.
func (s *story) rest(pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-s.ctx.Done():
	}
}

// hop sends requests of one client to the apps in turns, and says how they were answered and who decided.
func (s *story) hop(client string, requests int) {
	if !s.going() {
		return
	}
	before := s.decisions()
	served := make([]int, len(s.apps))
	refused, all := 0, 0
	for i := range requests {
		status, err := s.ask(s.apps[i%len(s.apps)], client)
		switch {
		case err != nil:
			s.err = err
			return
		case status == http.StatusOK:
			served[i%len(s.apps)]++
			all++
		case status == http.StatusTooManyRequests:
			refused++
		default:
			s.err = fmt.Errorf("%s was answered %d", client, status)
			return
		}
	}
	after := s.decisions()
	s.say("   %s sends %2d: %2d served (%d + %d + %d), %2d refused with 429; decided by redis: %d, by the instances alone: %d", client,
		requests, all, served[0], served[1], served[2], refused, after["redis"]-before["redis"], after["local"]-before["local"])
}

func (s *story) ask(a *app, client string) (status int, err error) {
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-API-Key", client)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// decisions counts who has decided, over all instances.
func (s *story) decisions() map[string]int64 {
	sum := make(map[string]int64)
	for _, a := range s.apps {
		for source, n := range a.store.(limits.Reporter).Report().Decisions {
			sum[source] += n
		}
	}
	return sum
}

// awaitUp waits until all instances have noticed by themselves that Redis answers.
func (s *story) awaitUp() {
	begin := time.Now()
	for _, a := range s.apps {
		for s.going() && a.store.(limits.Reporter).Report().State != "up" {
			s.rest(10 * time.Millisecond)
			if time.Since(begin) > time.Minute {
				s.err = fmt.Errorf("instance %d does not find Redis again", a.number)
			}
		}
	}
	s.say("All instances have found that out by themselves.")
}
