package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spillway-go/spillway/examples/internal/operate"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
	"github.com/spillway-go/spillway/shed/telemetry"
)

// stopWithin is how long running work may take to finish when the gateway stops.
const stopWithin = 9 * time.Second

// gateway is the whole running program. open makes it, serve sets it going, stop ends it.
type gateway struct {
	config *configfile.Config
	watch  *configfile.Watch // nil without a file
	tokens []pumpkin.Token
	made   string // the token that was made up, so that a person has to be told; else empty
	file   string // the break-glass file that the environment names

	listeners  []listener
	shedder    *shed.Shedder
	closeStore func() // nil until there is one
	endPumpkin func() // ends what shares and automates it; nil until there is that
	pumpkin    *pumpkin.Pumpkin
	metrics    *telemetry.Metrics
	proxy      *proxy
	report     func(text string) // what becomes of a changed file; nil means the standard error

	draining atomic.Bool
	running  sync.WaitGroup // requests, hijacked ones too
	failed   chan error     // a server that ended by itself
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

// listener is one address and what is served there.
type listener struct {
	name string
	net.Listener
	handler http.Handler
	server  *http.Server
}

// address is where to reach it from this machine.
func (l listener) address() string { return operate.Reachable(l.Addr()) }

// open makes everything that can fail, or nothing. Nothing is served yet. An error is one line for a person, or one for each
// mistake in a configuration file.
func open(o options, getenv func(string) string, log *slog.Logger) (*gateway, error) {
	g := &gateway{file: getenv(pumpkin.FileEnv), metrics: telemetry.New(), failed: make(chan error, 3), cancel: func() {}}
	err := g.load(o)
	if err != nil {
		return nil, err
	}
	if len(g.config.Upstreams) == 0 && o.checkListen == "" {
		return nil, errors.New("gateway: there is nothing to forward to; name the service with -upstream URL, or give a route of the file an upstream")
	}
	if o.checkListen != "" {
		if err := namesClients(g.config); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		if g.watch != nil {
			g.watch.Check = namesClients
		}
	}
	if g.tokens, g.made, err = pumpkin.AdminTokens(g.config.Pumpkin.TokenFile, getenv(pumpkin.TokenEnv)); err != nil {
		if g.config.Pumpkin.TokenFile != "" {
			return nil, fmt.Errorf("%s: %w", g.config.Place("pumpkin.admin.token_file"), err)
		}
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if err := g.listen(o); err != nil {
		g.release()
		return nil, err
	}
	if err := g.build(o, log); err != nil {
		g.release()
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return g, nil
}

// load reads the configuration.
func (g *gateway) load(o options) error {
	own := program(o)
	if o.upstream != "" {
		u, why := configfile.ParseUpstream(o.upstream)
		if why != "" {
			return fmt.Errorf("gateway: -upstream %s: %s; write it like http://127.0.0.1:9000", o.upstream, why)
		}
		own.Upstreams[configfile.DefaultUpstream] = u
	}
	g.config = &own
	if o.config == "" {
		return nil
	}
	g.watch = &configfile.Watch{Path: o.config, Program: own, Flags: func(c *configfile.Config) {
		if o.admin != "" { // then it makes no difference what the file says about that
			c.Pumpkin.AdminListen = own.Pumpkin.AdminListen
		}
	}}
	var err error
	g.config, err = g.watch.Load()
	return err
}

// try makes what the configuration describes, and throws it away.
func (g *gateway) try() error {
	s, err := shed.New(g.config.Shed)
	if err == nil {
		defer s.Close()
		_, err = middleware.ShedWithConfig(middleware.Config{Shedder: s, Logger: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		return g.watch.Located(err)
	}
	return nil
}

// listen opens the listeners.
func (g *gateway) listen(o options) error {
	admin := cmp.Or(o.admin, g.config.Pumpkin.AdminListen)
	tcp := func(addr string) func() (net.Listener, error) {
		return func() (net.Listener, error) { return net.Listen("tcp", addr) }
	}
	for _, want := range []struct {
		name, flag, addr string
		open             func() (net.Listener, error)
	}{
		{"proxy", "-listen", cmp.Or(o.listen, defaultListen), nil},
		{"admin", "-admin", admin, func() (net.Listener, error) { return pumpkin.ListenAdmin(admin, g.made == "") }},
		{"check", "-check-listen", o.checkListen, nil},
	} {
		if want.addr == "" || want.name == "proxy" && len(g.config.Upstreams) == 0 && o.listen == "" {
			continue
		}
		if want.open == nil {
			want.open = tcp(want.addr)
		}
		l, err := operate.Listen("gateway", want.flag, want.addr, want.open)
		if err != nil {
			return err
		}
		g.listeners = append(g.listeners, listener{name: want.name, Listener: l})
	}
	return nil
}

// build makes the rooms and the servers.
func (g *gateway) build(o options, log *slog.Logger) (err error) {
	banner := g.config.Pumpkin.Config()
	banner.Tokens, banner.Logger = g.tokens, log
	banner.File = cmp.Or(banner.File, g.file)
	if g.pumpkin, err = pumpkin.New(banner); err != nil {
		return err
	}
	cfg := g.config.Shed
	cfg.Features, cfg.Observer = g.pumpkin, g.metrics
	if cfg.Store, g.closeStore, err = g.config.OpenStore(log); err != nil {
		return err
	}
	if g.shedder, err = shed.New(cfg); err != nil {
		return err
	}
	if g.endPumpkin, err = g.config.RunPumpkin(g.pumpkin, g.shedder.Status, log); err != nil {
		return err
	}
	g.metrics.Watch(g.shedder)
	g.metrics.WatchPumpkin(g.pumpkin)
	quiet := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	if g.proxy, err = newProxy(g.shedder, g.pumpkin, g.config, quiet); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{g.metrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	console := operate.Console{
		Shedder: g.shedder, Pumpkin: g.pumpkin, Draining: g.draining.Load,
		Metrics:  promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		Sections: []middleware.DebugSection{{Name: "gateway", Read: func() any { return g.proxy.status() }}},
	}
	for i := range g.listeners {
		l := &g.listeners[i]
		switch l.name {
		case "admin":
			l.handler = console.Handler()
		case "check":
			said := log
			if g.listeners[0].name == "proxy" { // which warns of the same configuration
				said = slog.New(slog.DiscardHandler)
			}
			if l.handler, err = newCheck(g.shedder, g.pumpkin, said); err != nil {
				return err
			}
		default:
			if l.handler, err = g.public(o, l.Addr(), log); err != nil {
				return err
			}
		}
		l.server = &http.Server{Handler: l.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: quiet}
	}
	return nil
}

// public is what clients reach.
func (g *gateway) public(o options, self net.Addr, log *slog.Logger) (http.Handler, error) {
	protect, err := middleware.ShedWithConfig(middleware.Config{
		Shedder: g.shedder, Pumpkin: g.pumpkin, Classify: classify, Logger: log, Skip: ours,
	})
	if err != nil {
		return nil, err
	}
	var h http.Handler = protect(g.proxy)
	if o.peers != "" {
		p, err := newPeers(o, self, g.shedder, g.proxy, log)
		if err != nil {
			return nil, err
		}
		g.proxy.peers = p
		h = p.wrap(h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.running.Add(1)
		defer g.running.Done()
		h.ServeHTTP(w, begin(r))
	}), nil
}

// serve starts serving on all listeners, and follows the file.
func (g *gateway) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	if g.watch != nil {
		g.watch.Shedder = g.shedder
		g.watch.Apply = g.apply
		if g.report != nil {
			g.watch.Report = func(o configfile.Outcome) { g.report(o.String()) }
		}
		g.wg.Go(func() { g.watch.Run(ctx) })
	}
	for _, l := range g.listeners {
		g.wg.Go(func() {
			if err := l.server.Serve(impatient{l.Listener}); !errors.Is(err, http.ErrServerClosed) {
				g.failed <- err
			}
		})
	}
}

// apply takes over what is no business of the Shedder's.
func (g *gateway) apply(was, next *configfile.Config) []string {
	changes := g.proxy.use(next)
	return append(changes, operate.Polls(g.pumpkin, was.Pumpkin, next.Pumpkin, func(p configfile.Pumpkin) time.Duration { return p.PollIdle })...)
}

// stop ends in the order of the request's way: readiness, new connections and streams first, then, when running work is done, the
// rooms behind it.
func (g *gateway) stop() error {
	g.draining.Store(true)
	g.proxy.streams.end()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	var wg sync.WaitGroup
	for _, l := range g.listeners {
		wg.Go(func() {
			if l.server.Shutdown(ctx) != nil {
				l.server.Close()
			}
		})
	}
	wg.Wait()
	done := make(chan struct{})
	go func() {
		g.running.Wait() // upgraded connections are none of the servers' any more
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	err := ctx.Err()
	g.cancel()
	g.release()
	g.wg.Wait()
	if err != nil {
		return fmt.Errorf("some answers were not complete after %v and were cut off", stopWithin)
	}
	return nil
}

// release gives back whatever open has made.
func (g *gateway) release() {
	for _, l := range g.listeners {
		l.Close()
	}
	if g.proxy != nil {
		g.proxy.close()
	}
	if g.endPumpkin != nil {
		g.endPumpkin()
	}
	if g.shedder != nil {
		g.shedder.Close()
	}
	if g.closeStore != nil {
		g.closeStore()
	}
	if g.pumpkin != nil {
		g.pumpkin.Close()
	}
}
