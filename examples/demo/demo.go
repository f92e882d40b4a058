package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/examples/demo/load"
	"github.com/spillway-go/spillway/examples/demo/tour"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
	"github.com/spillway-go/spillway/shed/telemetry"
)

// stopWithin is how long running work may take to finish when the demo stops.
const stopWithin = 9 * time.Second

// demo is the whole running program. open makes it, serve sets it going, stop ends it.
type demo struct {
	config    *configfile.Config
	watch     *configfile.Watch // nil without a file
	tokens    []pumpkin.Token
	made      string // the token that was made up, so that a person has to be told; else empty
	tourToken string // the tour's own
	file      string // the break-glass file that the environment names

	public, admin net.Listener
	shedder       *shed.Shedder
	pumpkin       *pumpkin.Pumpkin
	metrics       *telemetry.Metrics
	arrivals      atomic.Int64    // for the app
	controls      *controls       // nil unless the public listener is loopback
	uncounted     map[string]bool // paths that are no business of the app
	servers       [2]*http.Server

	stopping chan struct{} // closed when streams have to end
	failed   chan error    // a server that ended by itself
	wg       sync.WaitGroup
}

// open makes everything that can fail, or nothing: configuration, token, both listeners, then the rooms behind them.
// Nothing is served yet. An error is one line for a person, or one for each mistake in a configuration file.
func open(o options, getenv func(string) string, log *slog.Logger) (*demo, error) {
	d := &demo{
		file: getenv(pumpkin.FileEnv), metrics: telemetry.New(), uncounted: make(map[string]bool),
		stopping: make(chan struct{}), failed: make(chan error, 2),
	}
	err := d.load(o)
	if err != nil {
		return nil, err
	}
	if d.tokens, d.made, err = pumpkin.AdminTokens(d.config.Pumpkin.TokenFile, getenv(pumpkin.TokenEnv)); err != nil {
		if line := d.config.Pumpkin.TokenFileLine; line > 0 {
			return nil, fmt.Errorf("%s:%d: %w", o.config, line, err)
		}
		return nil, fmt.Errorf("demo: %w", err)
	}
	d.tourToken = rand.Text() + rand.Text() // a file may hold digests only, so the tour brings its own
	guide, err := pumpkin.NewToken("demo-tour", d.tourToken)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	d.tokens = append(d.tokens, guide)
	if err := d.listen(o.listen, orElse(o.admin, d.config.Pumpkin.AdminListen)); err != nil {
		d.release()
		return nil, err
	}
	if err := d.build(log); err != nil {
		d.release()
		return nil, fmt.Errorf("demo: %w", err)
	}
	return d, nil
}

// listen opens both listeners.
func (d *demo) listen(public, admin string) error {
	for _, l := range []struct {
		flag, addr string
		into       *net.Listener
	}{{"-listen", public, &d.public}, {"-admin", admin, &d.admin}} {
		open := func() (net.Listener, error) { return net.Listen("tcp", l.addr) }
		if l.into == &d.admin {
			open = func() (net.Listener, error) { return pumpkin.ListenAdmin(l.addr, d.made == "") }
		}
		var err error
		if *l.into, err = open(); errors.Is(err, pumpkin.ErrNeedsToken) {
			return fmt.Errorf("demo: %w", err)
		} else if err != nil {
			why := err
			if cause := errors.Unwrap(err); cause != nil {
				why = cause
			}
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("demo: cannot listen on %s: another program does; stop it or choose another address with %s", l.addr, l.flag)
			}
			return fmt.Errorf("demo: cannot listen on %s: %w; choose another address with %s HOST:PORT", l.addr, why, l.flag)
		}
	}
	return nil
}

// build makes the rooms and the two servers.
func (d *demo) build(log *slog.Logger) (err error) {
	banner := d.config.Pumpkin.Config()
	banner.PollIdle, banner.Tokens, banner.Logger = banner.PollAfter, d.tokens, log
	banner.File = orElse(banner.File, d.file)
	d.pumpkin, err = pumpkin.New(banner)
	if err != nil {
		return err
	}
	cfg := d.config.Shed
	cfg.Features = d.pumpkin
	cfg.Observer = d.metrics
	if d.shedder, err = shed.New(cfg); err != nil {
		return err
	}
	d.metrics.Watch(d.shedder)
	d.metrics.WatchPumpkin(d.pumpkin)
	if addr := d.public.Addr().String(); loopbackHost(addr) {
		d.controls = newControls(addr, d.pumpkin, log, load.Run)
	}
	app, err := d.routes()
	if err != nil {
		return err
	}
	quiet := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	for i, h := range []http.Handler{app, d.operators()} {
		d.servers[i] = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, ErrorLog: quiet}
	}
	return nil
}

// operators is what the admin listener serves.
func (d *demo) operators() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", d.pumpkin.Admin())
	debug := middleware.DebugHandler(d.shedder,
		middleware.DebugSection{Name: "pumpkin", Read: func() any { return d.pumpkin.Status() }},
	)
	mux.Handle("GET /debug/spillway", whoMayLook(debug, d.pumpkin.Authorize(debug)))
	live := middleware.Dashboard(d.shedder)
	mux.Handle("GET /dashboard/", whoMayLook(live, d.pumpkin.Authorize(live)))
	return mux
}

// whoMayLook shows the debug view and the live page, which name no client, to everybody on this machine: a person on call has
// no time to look for the token. A page that was tricked into asking by a made-up host name, and everybody else, needs the token.
func whoMayLook(free, guarded http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopbackHost(r.RemoteAddr) && loopbackHost(r.Host) && r.Header.Get("Authorization") == "" {
			free.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// serve starts serving on both listeners.
func (d *demo) serve() {
	d.follow()
	for i, l := range []net.Listener{d.public, d.admin} {
		d.wg.Go(func() {
			if err := d.servers[i].Serve(l); !errors.Is(err, http.ErrServerClosed) {
				d.failed <- err
			}
		})
	}
}

// stop ends in the order of the request's way: load, new connections and streams first, then, when running work is done, the
// rooms behind it.
func (d *demo) stop() error {
	if d.controls != nil {
		d.controls.close()
	}
	close(d.stopping)
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range d.servers {
		wg.Go(func() {
			if s.Shutdown(ctx) != nil {
				s.Close()
			}
		})
	}
	wg.Wait()
	err := ctx.Err()
	d.release()
	d.wg.Wait()
	if err != nil {
		return fmt.Errorf("some clients had not taken their answers after %v and were cut off", stopWithin)
	}
	return nil
}

// release gives back whatever open has made.
func (d *demo) release() {
	for _, l := range []net.Listener{d.public, d.admin} {
		if l != nil {
			l.Close()
		}
	}
	if d.shedder != nil {
		d.shedder.Close()
	}
	if d.pumpkin != nil {
		d.pumpkin.Close()
	}
}

// target is where the tour goes.
func (d *demo) target() tour.Target {
	return tour.Target{Addr: reachable(d.public.Addr()), Admin: reachable(d.admin.Addr()), Token: d.tourToken}
}

// reachable returns an address that leads to a listener on this machine: one that listens everywhere is asked on loopback.
func reachable(a net.Addr) string {
	addr, err := netip.ParseAddrPort(a.String())
	if err != nil || !addr.Addr().IsUnspecified() {
		return a.String()
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), addr.Port()).String()
}
