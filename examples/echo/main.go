// Command echo is the smallest honest wrapping of an Echo app: every client gets 20 requests at once and 5 a second after
// that, and when too much arrives the app keeps answering as much as it can.
//
//	go run ./examples/echo
//	curl -i http://127.0.0.1:8082/
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/labstack/echo/v4"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware/echomw"
	"github.com/spillway-go/spillway/shed"
)

func main() {
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

	e := echo.New()
	e.HideBanner = true
	e.Use(echomw.Shed(s))
	e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "hello\n") })

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() { stopped <- e.Shutdown(context.Background()) }) // lets running requests finish
	if err := e.Start("127.0.0.1:8082"); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	<-stopped
}
