package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spillway-go/spillway/examples/internal/operate"
	"github.com/spillway-go/spillway/pumpkin"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // serving failed
	exitUsage  = 2 // flags, configuration, token or addresses cannot work; nothing was started
)

// options are the flags.
type options struct {
	config, upstream    string
	listen, admin       string
	checkListen         string
	peers, self, secret string
	check               bool
}

const defaultListen = "127.0.0.1:8080"

const usage = `usage: gateway -upstream URL [-config FILE] [-listen ADDR] [-admin ADDR] [-check-listen ADDR] [-peers URL,URL -self URL]
       gateway -config FILE -check

A reverse proxy that lets through what the service behind it can do.

  -upstream URL       where requests go that no route of FILE sends elsewhere
  -config FILE        a YAML file with the rules, see docs/configuration.md; followed while running
  -check              only say whether FILE is in order: exit 0, or 2 with PATH:LINE:COLUMN: what; how to mend
  -listen ADDR        what clients ask; default 127.0.0.1:8080
  -admin ADDR         the pumpkin's admin endpoints, /livez, /readyz, /metrics, /debug/spillway, /dashboard/; default what FILE
                      says, else 127.0.0.1:9180
  -check-listen ADDR  answers nginx auth_request and Envoy ext_authz, for who has a proxy already
  -peers URL,URL,...  all gateways of the fleet as they reach each other, this one included: each client is counted by one of them
  -self URL           which of the peers this one is, where -listen does not say it

The admin token is read from the file that FILE names, else from SPILLWAY_ADMIN_TOKEN, else made up and printed. What peers
prove who they are with is SPILLWAY_PEER_SECRET.
`

// parse reads the arguments.
func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	for name, into := range map[string]*string{
		"config": &o.config, "upstream": &o.upstream, "listen": &o.listen, "admin": &o.admin,
		"check-listen": &o.checkListen, "peers": &o.peers, "self": &o.self,
	} {
		flags.StringVar(into, name, "", "")
	}
	flags.BoolVar(&o.check, "check", false, "")
	err := operate.Parse(flags, args)
	switch {
	case err != nil:
	case o.check && o.config == "":
		err = errors.New("-check needs -config FILE: what shall be checked?")
	case o.self != "" && o.peers == "":
		err = errors.New("-self has no meaning without -peers")
	}
	return o, err
}

// run is the program: it serves until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "gateway: %v; run with -h for the options\n", err)
		return exitUsage
	}
	if o.check {
		return check(o, stdout, stderr)
	}
	o.secret = os.Getenv(peerSecretEnv)
	g, err := open(o, os.Getenv, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	g.report = func(text string) { fmt.Fprintln(stderr, text) }
	g.serve()
	g.greet(stdout)
	code := exitOK
	select {
	case <-ctx.Done():
	case err := <-g.failed:
		fmt.Fprintln(stderr, "gateway: serving failed:", err)
		code = exitFailed
	}
	if err := g.stop(); err != nil {
		fmt.Fprintln(stderr, "gateway:", err)
	}
	return code
}

// check says whether the configuration file would be taken.
func check(o options, stdout, stderr io.Writer) int {
	g := &gateway{}
	err := g.load(o)
	if err == nil {
		err = g.try()
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	for _, w := range g.config.Warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	// Where a file is checked the files beside it need not be. Where it is used they must.
	for _, w := range g.config.CheckFiles() {
		fmt.Fprintln(stderr, "warning:", w)
	}
	if o.peers != "" {
		if w := pinsOf(g.config.Shed).warning; w != "" {
			fmt.Fprintln(stderr, "warning:", w)
		}
	}
	fmt.Fprintf(stdout, "%s: in order: %s, %s\n", o.config, counted(len(g.config.Shed.Limits), "limit"), counted(len(g.config.Shed.Routes), "route"))
	return exitOK
}

// counted is a number of things, in words.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// greet tells the person at the terminal where everything is.
func (g *gateway) greet(w io.Writer) {
	var b strings.Builder
	for _, l := range g.listeners {
		url, curl := operate.URL(l.Addr())
		if curl != "" {
			url += " with curl " + curl
		}
		fmt.Fprintf(&b, "gateway: %-6s %s\n", l.name, strings.TrimSpace(url))
	}
	for _, line := range g.proxy.table.Load().lines() {
		fmt.Fprintf(&b, "gateway: %s\n", line)
	}
	if g.made != "" {
		fmt.Fprintf(&b, "gateway: token  %s (made up for this run; set %s for one of your own)\n", g.made, pumpkin.TokenEnv)
	}
	io.WriteString(w, b.String())
}
