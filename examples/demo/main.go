// Command demo shows Spillway at work: an Echo app that can do exactly 800 requests per second, protected, with a live page
// and buttons to overload it. It needs nothing beside itself.
//
//	go run ./examples/demo                 serve on 127.0.0.1:8080, admin on 127.0.0.1:9180
//	go run ./examples/demo -tour           play the main scenarios against itself, check them, exit 0 or 1
//	go run ./examples/demo -config FILE    with the rules of a YAML file, such as examples/demo/spillway.yaml
//
// Where to look: defaults.go is what an app configures, app.go how it is wrapped, demo.go how it starts and stops. The rest
// is the stage: backend (the app's capacity), load (the child process that makes the load), web (the live page),
// tour (the scenarios).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == load.ChildArg {
		os.Exit(load.Child(os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
