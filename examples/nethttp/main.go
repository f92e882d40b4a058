// Command nethttp is the smallest honest wrapping of a net/http app: every client gets 20 requests at once and 5 a second
// after that, and when too much arrives the app keeps answering as much as it can.
//
//	go run ./examples/nethttp
//	curl -i http://127.0.0.1:8081/
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello") })

	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{
			{Name: "per-client", Rule: limits.TokenBucket{Capacity: 20, Refill: limits.PerSecond(5)}},
			{Name: "per-ip", Per: shed.PerIP, Rule: limits.TokenBucket{Capacity: 500, Refill: limits.PerSecond(100)}}, // whatever keys it sends
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: middleware.Shed(s)(mux), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() { stopped <- server.Shutdown(context.Background()) }) // lets running requests finish
	log.Printf("listening on http://%s/", server.Addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	<-stopped
}
