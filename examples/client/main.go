// Command client calls another service as Spillway wants to be called: at most so many at once, within a quota for the day,
// not faster than the service says, hardly at all while it refuses everything, and not what it says is off.
//
//	go run ./examples/client                                        # calls a small service of its own
//	go run ./examples/demo &                                        # or the demo: press its buttons meanwhile
//	go run ./examples/client -url http://127.0.0.1:8080/api/report -feature reports -pumpkin http://127.0.0.1:8080/pumpkin.json
//
// Each line says which call it is, when it ended and how: a status, or why it was not made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
)

func main() {
	url := flag.String("url", "", "what to call; empty for a service of this program's own, which allows 10 at once and 5 a second")
	calls := flag.Int("calls", 25, "how many calls to make")
	parallel := flag.Int("parallel", 4, "how many at once")
	wait := flag.Duration("wait", 10*time.Second, "how long a call may wait")
	document := flag.String("pumpkin", "", "where the service says what is off, such as http://127.0.0.1:8080/pumpkin.json")
	feature := flag.String("feature", "", "which feature the calls need")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg := middleware.TransportConfig{
		// What the service costs, say, or what its contract allows. Where several processes share it, they share a Store, too.
		Limits:   []shed.Limit{{Name: "paid", Rule: limits.FixedWindow{Quota: limits.PerDay(10_000)}}},
		Parallel: *parallel,
		Wait:     *wait,
	}
	if *document != "" {
		banner, err := pumpkin.NewClient(pumpkin.ClientConfig{URL: *document})
		if err != nil {
			log.Fatal("client: ", err)
		}
		defer banner.Close()
		cfg.Features, cfg.Feature = banner, func(*http.Request) string { return *feature }
	}
	if err := run(ctx, os.Stdout, *url, *calls, cfg); err != nil {
		log.Print("client: ", err)
	}
}

// run makes so many calls, all at once as far as cfg lets them, and tells how they ended.
func run(ctx context.Context, out io.Writer, url string, calls int, cfg middleware.TransportConfig) error {
	if url == "" {
		service, err := newService()
		if err != nil {
			return err
		}
		defer service.Close()
		url = service.URL
	}
	transport, err := middleware.NewTransport(cfg)
	if err != nil {
		return err
	}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()

	begin := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range calls {
		wg.Go(func() {
			outcome := call(ctx, client, url)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "call %2d  %6.2f s  %s\n", i+1, time.Since(begin).Seconds(), outcome)
		})
	}
	wg.Wait()
	st := transport.Status()
	_, err = fmt.Fprintf(out, "%d calls, %d sent again, %d held back by the throttle, %d because the service said so, %d because it is off\n",
		st.Calls, st.Retries, st.Throttled, st.Paused, st.Blocked)
	return err
}

// call makes one call and says in a word how it ended.
func call(ctx context.Context, client *http.Client, url string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := client.Do(r)
	if refused, ok := errors.AsType[*middleware.CallError](err); ok {
		return "not made: " + string(refused.Reason)
	}
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // the place is free when the answer has been read
	return answer.Status
}

// service is something to call: a protected app with a small quota.
type service struct {
	*httptest.Server
	shedder *shed.Shedder
}

func newService() (*service, error) {
	s, err := shed.New(shed.Config{
		Clients: shed.Clients{Identify: []string{"ip"}},
		Limits:  []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 10, Refill: limits.PerSecond(5)}}},
	})
	if err != nil {
		return nil, err
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello") })
	return &service{httptest.NewServer(middleware.Shed(s)(hello)), s}, nil
}

// Close ends the service.
func (s *service) Close() {
	s.Server.Close()
	s.shedder.Close()
}
