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
	"net/http"
	"net/http/httptest"
	"net/url"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "client: %v; run with -h for the options\n", err)
		os.Exit(2)
	}
	err = o.run(ctx, os.Stdout)
	switch {
	case ctx.Err() != nil:
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	url, document, feature string
	calls, parallel        int
	wait                   time.Duration
}

// parse reads the arguments. Help goes to the standard output.
func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.StringVar(&o.url, "url", "", "what to call; empty for a service of this program's own, which allows 10 at once and 5 a second")
	flags.IntVar(&o.calls, "calls", 25, "how many calls to make")
	flags.IntVar(&o.parallel, "parallel", 4, "how many at once")
	flags.DurationVar(&o.wait, "wait", 10*time.Second, "how long a call may wait")
	flags.StringVar(&o.document, "pumpkin", "", "where the service says what is off, such as http://127.0.0.1:8080/pumpkin.json")
	flags.StringVar(&o.feature, "feature", "", "which feature the calls need")
	flags.SetOutput(io.Discard)
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Println("usage: client [flags]")
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.calls < 1 || o.parallel < 1 || o.wait <= 0:
		err = errors.New("-calls, -parallel and -wait have to be above 0")
	case o.feature != "" && o.document == "":
		err = errors.New("-feature has no meaning without -pumpkin")
	case o.url != "":
		if u, e := url.Parse(o.url); e != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			err = fmt.Errorf("-url %s: write it like http://127.0.0.1:8080/api/report", o.url)
		}
	}
	return o, err
}

// run makes the calls that the flags ask for.
func (o options) run(ctx context.Context, out io.Writer) error {
	cfg := middleware.TransportConfig{
		// What the service costs, say, or what its contract allows. Where several processes share it, they share a Store, too.
		Limits:   []shed.Limit{{Name: "paid", Rule: limits.FixedWindow{Quota: limits.PerDay(10_000)}}},
		Parallel: o.parallel,
		Wait:     o.wait,
	}
	if o.document != "" {
		banner, err := pumpkin.NewClient(pumpkin.ClientConfig{URL: o.document})
		if err != nil {
			return err
		}
		defer banner.Close()
		cfg.Features, cfg.Feature = banner, func(*http.Request) string { return o.feature }
	}
	return run(ctx, out, o.url, o.calls, cfg)
}

// run makes so many calls, all at once as far as cfg lets them, and tells how they ended. Calls that had no answer are an error; a call
// that was not made because the service wants it so is none.
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
	unanswered := 0
	for i := range calls {
		wg.Go(func() {
			outcome, ok := call(ctx, client, url)
			mu.Lock()
			defer mu.Unlock()
			if !ok {
				unanswered++
			}
			fmt.Fprintf(out, "call %2d  %6.2f s  %s\n", i+1, time.Since(begin).Seconds(), outcome)
		})
	}
	wg.Wait()
	st := transport.Status()
	fmt.Fprintf(out, "%d calls, %d sent again, %d held back by the throttle, %d because the service said so, %d because it is off\n",
		st.Calls, st.Retries, st.Throttled, st.Paused, st.Blocked)
	if unanswered > 0 {
		return fmt.Errorf("%d of %d calls had no answer", unanswered, calls)
	}
	return nil
}

// call makes one call and says in a word how it ended, and whether as it should.
func call(ctx context.Context, client *http.Client, url string) (outcome string, ok bool) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error(), false
	}
	answer, err := client.Do(r)
	if refused, ok := errors.AsType[*middleware.CallError](err); ok {
		return "not made: " + string(refused.Reason), true
	}
	if err != nil {
		return err.Error(), false
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // the place is free when the answer has been read
	return answer.Status, true
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
