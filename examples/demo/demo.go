package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
	"github.com/spillway-go/spillway/examples/demo/internal/tour"
	"github.com/spillway-go/spillway/examples/internal/operate"
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
	closeStore    func() // nil until there is one
	endPumpkin    func() // ends what shares and automates it; nil until there is that
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
		if d.config.Pumpkin.TokenFile != "" {
			return nil, fmt.Errorf("%s: %w", d.config.Place("pumpkin.admin.token_file"), err)
		}
		return nil, fmt.Errorf("demo: %w", err)
	}
	d.tourToken = rand.Text() + rand.Text() // a file may hold digests only, so the tour brings its own
	guide, err := pumpkin.NewToken("demo-tour", d.tourToken)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	d.tokens = append(d.tokens, guide)
	if err := d.listen(o.listen, cmp.Or(o.admin, d.config.Pumpkin.AdminListen)); err != nil {
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
		if *l.into, err = operate.Listen("demo", l.flag, l.addr, open); err != nil {
			return err
		}
	}
	return nil
}

// build makes the rooms and the two servers.
func (d *demo) build(log *slog.Logger) (err error) {
	banner := d.config.Pumpkin.Config()
	banner.PollIdle = idle(d.config.Pumpkin)
	banner.Tokens, banner.Logger = d.tokens, log
	banner.File = cmp.Or(banner.File, d.file)
	d.pumpkin, err = pumpkin.New(banner)
	if err != nil {
		return err
	}
	cfg := d.config.Shed
	cfg.Features = d.pumpkin
	cfg.Observer = d.metrics
	if cfg.Store, d.closeStore, err = d.config.OpenStore(log); err != nil {
		return err
	}
	if d.shedder, err = shed.New(cfg); err != nil {
		return err
	}
	if d.endPumpkin, err = d.config.RunPumpkin(d.pumpkin, d.shedder.Status, log); err != nil {
		return err
	}
	d.metrics.Watch(d.shedder)
	d.metrics.WatchPumpkin(d.pumpkin)
	if addr := d.public.Addr().String(); operate.Loopback(addr) {
		d.controls = newControls(addr, d.pumpkin, log, load.Run)
	}
	app, err := d.routes(log)
	if err != nil {
		return err
	}
	quiet := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // for curl --http2-prior-knowledge: both say the same
	for i, h := range []http.Handler{app, operate.Console{Shedder: d.shedder, Pumpkin: d.pumpkin}.Handler()} {
		d.servers[i] = &http.Server{Handler: h, Protocols: protocols, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, ErrorLog: quiet}
	}
	return nil
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
	if d.endPumpkin != nil {
		d.endPumpkin()
	}
	if d.shedder != nil {
		d.shedder.Close()
	}
	if d.closeStore != nil {
		d.closeStore()
	}
	if d.pumpkin != nil {
		d.pumpkin.Close()
	}
}

// target is where the tour goes.
func (d *demo) target() tour.Target {
	return tour.Target{Addr: operate.Reachable(d.public.Addr()), Admin: operate.Reachable(d.admin.Addr()), Token: d.tourToken}
}
