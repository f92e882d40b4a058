package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spillway-go/spillway/examples/demo/internal/tour"
	"github.com/spillway-go/spillway/examples/internal/operate"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // a check of the tour failed, or serving did
	exitUsage  = 2 // flags, configuration, token or addresses cannot work; nothing was started
)

// options are the flags.
type options struct {
	listen, admin, config string
	tour                  bool
}

const defaultListen = "127.0.0.1:8080"

const usage = `usage: demo [-listen ADDR] [-admin ADDR] [-config FILE] [-tour]

Serves an app that can do exactly 800 requests per second, protected by Spillway, with a live page.

  -listen ADDR   the app and the page; default 127.0.0.1:8080, with -tour a free port
  -admin ADDR    the pumpkin's admin endpoints, /dashboard/, /debug/spillway; default 127.0.0.1:9180 or what FILE says, with -tour
                 a free port
  -config FILE   a YAML file in place of the built-in rules, see examples/demo/spillway.yaml
  -tour          play the main scenarios, check them, and exit 0 if all is as it should be, else 1

The admin token is read from the file that FILE names, else from SPILLWAY_ADMIN_TOKEN, else made up and printed.
`

// parse reads the arguments.
func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", "", "")
	flags.StringVar(&o.admin, "admin", "", "")
	flags.StringVar(&o.config, "config", "", "")
	flags.BoolVar(&o.tour, "tour", false, "")
	err := operate.Parse(flags, args)
	if o.tour {
		o.listen, o.admin = cmp.Or(o.listen, "127.0.0.1:0"), cmp.Or(o.admin, "127.0.0.1:0")
	}
	o.listen = cmp.Or(o.listen, defaultListen)
	return o, err
}

// run is the program: it serves, or plays the tour, until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "demo: %v; run with -h for the options\n", err)
		return exitUsage
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	if o.tour {
		logger = slog.New(slog.DiscardHandler) // the tour says itself what a person should see
	}
	d, err := open(o, os.Getenv, logger)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	d.serve()
	code := exitOK
	if o.tour {
		code = tour.Run(ctx, d.target(), stdout)
	} else {
		d.greet(stdout)
		select {
		case <-ctx.Done():
		case err := <-d.failed:
			fmt.Fprintln(stderr, "demo: serving failed:", err)
			code = exitFailed
		}
	}
	if err := d.stop(); err != nil {
		fmt.Fprintln(stderr, "demo:", err)
	}
	return code
}
