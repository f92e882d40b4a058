// Command complete is an app with everything around it, to copy and to cut down: rules in a YAML file that may change while the program
// runs, the pumpkin, metrics, an admin listener with the live dashboard, and a stop that lets running requests finish.
//
//	go run ./examples/complete -config examples/complete/spillway.yaml
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
	"github.com/spillway-go/spillway/shed/telemetry"
)

func main() {
	config := flag.String("config", "spillway.yaml", "the rules; a change is taken over while the program runs")
	listen := flag.String("listen", "127.0.0.1:8083", "where clients come in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, app(), *config, *listen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// app is your own part. It knows nothing of Spillway; its page has the banner by one line of HTML.
func app() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `<!doctype html><html lang="en"><title>My app</title><script src="/pumpkin.js" async></script><h1>My app</h1>`)
	})
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "all is well") })
	return mux
}

// run serves handler until ctx ends, and says on out where everything is.
func run(ctx context.Context, handler http.Handler, config, listen string, out io.Writer) error {
	// The file. What it says is laid over Program, where your program's own defaults belong.
	watch := &configfile.Watch{Path: config, Program: configfile.Config{
		Pumpkin: configfile.Pumpkin{AdminListen: configfile.DefaultAdminListen},
		Unaided: true, // until you have a Principal function: then the file may speak of principals
	}}
	cfg, err := watch.Load()
	if err != nil {
		return err
	}

	// The pumpkin, and the token of those who may raise a banner.
	banner := cfg.Pumpkin.Config()
	var made string
	if banner.Tokens, made, err = pumpkin.AdminTokens(cfg.Pumpkin.TokenFile, os.Getenv(pumpkin.TokenEnv)); err != nil {
		return err
	}
	p, err := pumpkin.New(banner)
	if err != nil {
		return err
	}
	defer p.Close()

	// The Shedder, with its store (Redis, if the file says so) and its metrics.
	metrics := telemetry.New()
	store, closeStore, err := cfg.OpenStore(slog.Default())
	if err != nil {
		return err
	}
	defer closeStore()
	cfg.Shed.Store, cfg.Shed.Features, cfg.Shed.Observer = store, p, metrics
	s, err := shed.New(cfg.Shed)
	if err != nil {
		return watch.Located(err)
	}
	defer s.Close()
	endPumpkin, err := cfg.RunPumpkin(p, s.Status, slog.Default())
	if err != nil {
		return err
	}
	defer endPumpkin()
	metrics.Watch(s)
	metrics.WatchPumpkin(p)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	// What clients reach: the app behind the Shedder, and beside it the banner, which has to answer whatever happens.
	protect, err := middleware.ShedWithConfig(middleware.Config{Shedder: s, Pumpkin: p})
	if err != nil {
		return err
	}
	front := http.NewServeMux()
	front.Handle("/", protect(handler))
	front.Handle("/pumpkin.json", p.Public())
	front.Handle("/pumpkin.js", p.Public())

	// What operators reach, and nobody else should. Without a token of your own it listens on this machine only.
	admin := http.NewServeMux()
	admin.Handle("/", p.Admin())
	admin.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	admin.Handle("GET /dashboard/", middleware.Dashboard(s))
	admin.Handle("GET /debug/spillway", middleware.DebugHandler(s))
	admin.Handle("GET /livez", middleware.Livez())
	admin.Handle("GET /readyz", middleware.Readyz(func() bool { return ctx.Err() != nil }))
	public, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	defer public.Close()
	private, err := pumpkin.ListenAdmin(cfg.Pumpkin.AdminListen, made == "")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "app    http://%s/\nadmin  http://%s/ with /dashboard/, /metrics, /debug/spillway\ntoken  %s\n",
		public.Addr(), private.Addr(), cmp.Or(made, "as you have set it"))

	// Follow the file. Most of it is the Shedder's; how often clients poll is the pumpkin's.
	watch.Shedder = s
	watch.Apply = func(_, next *configfile.Config) []string {
		_ = p.SetPoll(next.Pumpkin.PollAfter, next.Pumpkin.PollIdle) // was checked with the file
		return nil
	}
	go watch.Run(ctx)

	// Serve until the end is asked for; then let what runs finish.
	clients := &http.Server{Handler: front, ReadHeaderTimeout: 5 * time.Second}
	operators := &http.Server{Handler: admin, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 2)
	go func() { failed <- clients.Serve(public) }()
	go func() { failed <- operators.Serve(private) }()
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, clients.Shutdown(last), operators.Shutdown(last))
}
