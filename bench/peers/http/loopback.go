package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/bench/peers/stopwatch"
	"github.com/spillway-go/spillway/bench/peers/table"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/telemetry"
)

// callers is how many connections the clients keep busy.
const callers = 16

// keeps is the share of the bare server's throughput that has to be left.
const keeps = 0.95

// fieldsOnly shows how much of the difference is net/http sending three more fields, which nobody who sets them can spare.
const fieldsOnly = "bare handler, the same fields"

// clientMark in the environment makes this program the clients' process.
const clientMark = "SPILLWAY_BENCH_HTTP_CLIENTS"

// loopback compares a server with a full Spillway with a bare one, over real connections. The clients are another process, so that
// only what the server does is counted.
func loopback(out io.Writer, p plan) error {
	before := table.Load()
	full, closing, err := openEverything()
	if err != nil {
		return err
	}
	defer closing()
	clients, err := startClients()
	if err != nil {
		return err
	}
	defer clients.close()
	var timed []stopwatch.Contender
	for _, c := range []struct {
		name string
		h    http.Handler
	}{{bare, handler}, {own, full}, {fieldsOnly, withFieldsOf(full)}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: c.h, ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = srv.Serve(l) }()
		defer srv.Close()
		url := "http://" + l.Addr().String() + "/api/items"
		timed = append(timed, stopwatch.Contender{Name: c.name, Run: func(_, n int) error { return clients.ask(url, n) }})
	}
	figures, err := stopwatch.Compare(stopwatch.Plan{Cores: 1, Rounds: p.rounds, Span: 5 * p.span}, timed)
	if err != nil {
		return err
	}
	share := figures[0].Nanos / figures[1].Nanos
	fmt.Fprintf(out, "%s\n\nOver real connections, everything on that the demo has: processor time of the server for one request, %d connections; median\n"+
		"of %d interleaved runs of %v.\n\n", table.Machine(), callers, p.rounds, 5*p.span)
	t := table.Table{Left: 1, Header: []string{"server", "ns", "B", "allocs", "throughput"}}
	for _, f := range figures {
		t.Add(f.Name, fmt.Sprintf("%.0f", f.Nanos), fmt.Sprintf("%.0f", f.Bytes), fmt.Sprintf("%.0f", f.Allocs), fmt.Sprintf("%.3f", figures[0].Nanos/f.Nanos))
	}
	if err := t.Markdown(out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nMark: at least %.2f of the bare server's throughput: %.3f, %s.\n\nNoise: the middle half of the runs lies within ±%.0f %% of the median; load average %s before, %s after.\n",
		keeps, share, reached(share >= keeps), 100*max(figures[0].Spread, figures[1].Spread, figures[2].Spread), before, table.Load())
	return err
}

// withFieldsOf is the bare handler that answers with the fields that full answers with, and does nothing else of what full does.
func withFieldsOf(full http.Handler) http.Handler {
	w := &response{header: http.Header{}}
	full.ServeHTTP(w, newRequest())
	type field struct{ name, value string }
	var fields []field
	for name := range w.header {
		fields = append(fields, field{name, w.header.Get(name)})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		for i := range fields {
			header[fields[i].name] = []string{fields[i].value}
		}
		handler(w, r)
	})
}

// openEverything opens what the demo has: limits, routes, features, the adaptive gate, its line, health signals, metrics and the
// banner's revision on each response. Only the limits' numbers are out of reach, for a refusal is cheaper than an answer.
func openEverything() (http.Handler, func(), error) {
	banner, err := pumpkin.New(pumpkin.Config{})
	if err != nil {
		return nil, nil, err
	}
	metrics := telemetry.New()
	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{
			{Name: "per-client", Rule: limits.TokenBucket{Capacity: most, Refill: limits.PerSecond(1000)}},
			{Name: "smooth-orders", Rule: limits.LeakyBucket{Capacity: 40, Leak: limits.PerSecond(20)}, Excess: shed.Delay, Routes: []string{"orders"}},
		},
		Routes: []shed.Route{
			{Name: "items", Match: "GET /api/items"},
			{Name: "report", Match: "GET /api/report", Cost: 5, Priority: shed.Sheddable, Feature: "reports"},
			{Name: "orders", Match: "POST /api/orders", Feature: "orders"},
			{Name: "events", Match: "GET /api/events", LongLived: 100},
		},
		Features: banner, Observer: metrics,
	})
	if err != nil {
		banner.Close()
		return nil, nil, err
	}
	metrics.Watch(s)
	closing := func() { _ = s.Close(); banner.Close() }
	wrap, err := middleware.ShedWithConfig(middleware.Config{Shedder: s, Pumpkin: banner, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		closing()
		return nil, nil, err
	}
	return wrap(handler), closing, nil
}

// clients is the process that asks.
type clients struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startClients() (*clients, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &clients{cmd: exec.Command(exe)}
	c.cmd.Env = append(os.Environ(), clientMark+"=1")
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// ask lets the clients send n requests to url and waits until all are answered.
func (c *clients) ask(url string, n int) error {
	if _, err := fmt.Fprintf(c.in, "%s %d\n", url, n); err != nil {
		return err
	}
	said, err := c.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the clients are gone: %w", err)
	}
	if said = strings.TrimSpace(said); said != "ok" {
		return fmt.Errorf("the clients: %s", said)
	}
	return nil
}

func (c *clients) close() {
	_ = c.in.Close() // ends them
	_ = c.cmd.Wait()
}

// beClients does what ask wants until its input ends.
func beClients(in io.Reader, out io.Writer) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for {
		var url string
		var n int64
		if _, err := fmt.Fscan(in, &url, &n); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		said := "ok"
		if err := send(client, url, n); err != nil {
			said = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if _, err := fmt.Fprintln(out, said); err != nil {
			return err
		}
	}
}

// send makes n requests over all connections.
func send(client *http.Client, url string, n int64) error {
	var left atomic.Int64
	left.Store(n)
	errs := make(chan error, callers)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := one(client, url); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func one(client *http.Client, url string) error {
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d from %s", res.StatusCode, url)
	}
	return nil
}
