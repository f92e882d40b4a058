package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes.
const (
	exitPass    = 0
	exitFail    = 1
	exitUsage   = 2
	exitInvalid = 3
)

// usage is an error of whoever called; everything else that goes wrong makes the run invalid.
type usage struct{ error }

func usagef(format string, args ...any) error { return usage{fmt.Errorf("bench: "+format, args...)} }

// command is one word of the command line.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string, out, log io.Writer) (code int, err error)
}

var commands = []command{
	{"run", "load on a server in real time", runCommand},
	{"sim", "a scenario in virtual time, the same for the same seed", simCommand},
	{"sweep", "goodput and latency against offered load", sweepCommand},
	{"suite", "all scenarios, one verdict", suiteCommand},
	{"compare", "two result files: better, worse, or noise", compareCommand},
	{"report", "result files as HTML, JUnit XML, Markdown", reportCommand},
	{"gameday", "a bad day of two gateways: everything on, everything broken once", gamedayCommand},
	{"bars", "what the gate reaches in overload, changes and calm, as medians over seeds", barsCommand},
	{"soak", "ten minutes at 0.9 of the capacity in real time: nothing may grow", soakCommand},
	{"speed", "what bench itself can do: simulated requests, arrivals in process and over sockets", speedCommand},
	{"list", "the scenarios, with their criteria", listCommand},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// dispatch runs the command and returns the exit code.
func dispatch(ctx context.Context, args []string, out, log io.Writer) int {
	if len(args) > 0 {
		for _, c := range commands {
			if c.name == args[0] {
				return finish(log, c, ctx, args[1:], out)
			}
		}
		if args[0] != "help" && args[0] != "-h" && args[0] != "-help" && args[0] != "--help" {
			fmt.Fprintf(log, "bench: there is no command %q; see bench help\n", args[0])
			return exitUsage
		}
	}
	fmt.Fprintln(log, "usage: bench COMMAND [flags]; bench COMMAND -h shows the flags")
	for _, c := range commands {
		fmt.Fprintf(log, "  %-8s %s\n", c.name, c.about)
	}
	fmt.Fprint(log, columns)
	if len(args) > 0 {
		return exitPass
	}
	return exitUsage
}

func finish(log io.Writer, c command, ctx context.Context, args []string, out io.Writer) int {
	code, err := c.run(ctx, args, out, log)
	var u usage
	var h help
	switch {
	case errors.As(err, &h):
		fmt.Fprintf(log, "usage: bench %s [flags]: %s\n", c.name, c.about)
		h.SetOutput(log)
		h.PrintDefaults()
		return exitPass
	case errors.As(err, &u):
		fmt.Fprintln(log, err)
		return exitUsage
	case err != nil:
		fmt.Fprintln(log, err)
		return exitInvalid
	}
	return code
}

// help asks for the flags of a command.
type help struct{ *flag.FlagSet }

func (help) Error() string { return flag.ErrHelp.Error() }

// flags makes a flag set of a command for parse, which says in one line what is wrong.
func flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// parse reads the arguments of a command, of which so many may be no flags; below 0 means any number. Files that will be written are tried
// at once: after the work is too late.
func parse(f *flag.FlagSet, args []string, operands int) (err error) {
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return help{f}
	case err != nil:
		return usagef("%w; bench %s -h shows the flags", err, f.Name())
	case operands >= 0 && f.NArg() > operands:
		hint := ""
		if f.Lookup("scenario") != nil {
			hint = ", and a scenario is named with -scenario"
		}
		return usagef("%q is not understood; flags come before other arguments%s; bench %s -h shows them", f.Arg(operands), hint, f.Name())
	}
	f.Visit(func(g *flag.Flag) {
		if name, ok := g.Value.(*outFile); ok && err == nil {
			if failed := name.try(); failed != nil {
				err = usagef("-%s: %w", g.Name, failed)
			}
		}
	})
	return err
}
