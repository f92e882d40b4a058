package probe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spillway-go/spillway/bench/internal/load"
)

// Real asks real servers.
type Real struct {
	// Servers are one or two senders; with one the second server is the first.
	Servers []load.Sender
	// Method, Path and Body are what is asked for.
	Method, Path, Body string
	// Timeout bounds one answer.
	Timeout time.Duration
}

// Ask implements Asker.
func (r *Real) Ask(ctx context.Context, asks []Ask) ([]Answer, error) {
	answers := make([]Answer, len(asks))
	start := time.Now()
	var all sync.WaitGroup
	for i, a := range asks {
		if wait := a.At - time.Since(start); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				all.Wait()
				return nil, ctx.Err()
			}
		} else if i > 0 && a.At > asks[i-1].At {
			all.Wait() // late already: those of the time before shall at least have been answered
		}
		all.Go(func() { answers[i] = r.ask(ctx, start, a) })
		if i+1 < len(asks) && asks[i+1].At > a.At && i > 0 && asks[i-1].At == a.At {
			all.Wait() // the end of a burst: what comes after must find it over
		}
	}
	all.Wait()
	for _, a := range answers {
		if a.Err != nil {
			return nil, a.Err
		}
	}
	return answers, nil
}

func (r *Real) ask(ctx context.Context, start time.Time, a Ask) Answer {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	server := r.Servers[min(a.Server, len(r.Servers)-1)]
	answer := Answer{Sent: time.Since(start)}
	got := server.Send(ctx, &load.Shot{Client: a.Client, Method: r.Method, Path: r.Path, Body: r.Body})
	answer.Done = time.Since(start)
	switch {
	case got.Err != nil:
		answer.Err = got.Err
	case got.Status < 400:
		answer.OK = true
	case got.Status != 429 && got.Status != 503:
		answer.Err = fmt.Errorf("%s answers %d; a probe needs a path that answers 2xx while there is quota (-path)", r.Path, got.Status)
	}
	return answer
}
