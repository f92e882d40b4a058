// Command gateway protects any HTTP service, in whatever language it is written: it stands in front of it as a reverse proxy
// and lets through what the service can do.
//
//	go run ./examples/gateway -upstream http://127.0.0.1:9000                    with sensible limits
//	go run ./examples/gateway -config FILE -upstream http://127.0.0.1:9000       with the rules of a YAML file, followed live
//	go run ./examples/gateway -config FILE -check                                says what is wrong with the file: exit 0 or 2
//	go run ./examples/gateway -config FILE -check-listen 127.0.0.1:9190          answers nginx auth_request and Envoy ext_authz
//
// docs/gateway.md is its manual. Where to look: proxy.go is the way of a request, defaults.go what holds without a file,
// gateway.go how it starts and stops, check.go what other proxies ask, peers.go how several gateways share clients.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
