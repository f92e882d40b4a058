package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spillway-go/spillway/examples/demo/internal/backend"
	"github.com/spillway-go/spillway/examples/demo/internal/web"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/middleware/echomw"
	"github.com/spillway-go/spillway/pumpkin"
)

// app is the protected application: a few handlers in front of a backend that can do just so much.
type app struct {
	backend  *backend.Backend
	orders   atomic.Int64    // numbered as they get their turn
	stopping <-chan struct{} // closed when streams have to end
	every    time.Duration   // between two events of a stream
}

// routes makes the Echo app: the numbering of arrivals outermost, then Spillway, then the handlers. Protecting an app
// is the one line with echomw.
func (d *demo) routes(log *slog.Logger) (*echo.Echo, error) {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	if d.watch == nil { // without a file whoever makes up a key is a new client on purpose: the buttons do nothing else
		log = slog.New(slog.DiscardHandler)
	}
	protect, err := echomw.Config{
		Shedder: d.shedder,
		Pumpkin: d.pumpkin,
		Logger:  log,
		// The demo knows no users, but a file that was written for an app with users is welcome.
		Principal: func(echo.Context) string { return "" },
		Skipper:   func(c echo.Context) bool { return c.Request().URL.Path == pumpkinPath },
	}.ToMiddleware()
	if err != nil {
		return nil, err
	}
	e.Use(d.number, protect)

	a := &app{backend: backend.New(backend.SlotCount), stopping: d.stopping, every: time.Second}
	read := []string{http.MethodGet, http.MethodHead} // Echo's GET does not answer HEAD
	e.Match(read, "/api/items", a.items)
	e.Match(read, "/api/report", a.report)
	e.POST(ordersPath, a.order)
	e.GET(eventsPath, a.events)

	registry := prometheus.NewRegistry()
	if err := registry.Register(d.metrics); err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	page, err := d.page()
	if err != nil {
		return nil, err
	}
	d.aside(e, "/healthz", middleware.Livez())
	d.aside(e, "/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	for _, path := range web.Paths() {
		d.aside(e, path, page)
	}
	d.aside(e, pumpkinPath, d.pumpkin.Public(), http.MethodGet, http.MethodHead, http.MethodOptions)
	d.aside(e, widgetPath, pumpkin.Widget())
	if d.controls != nil {
		for _, button := range buttons {
			d.aside(e, "/demo/"+button, d.controls.handler(), http.MethodPost)
		}
	}
	return e, nil
}

// aside serves what is no business of the app, and so not numbered; GET and HEAD unless methods are named.
func (d *demo) aside(e *echo.Echo, path string, h http.Handler, methods ...string) {
	if len(methods) == 0 {
		methods = []string{http.MethodGet, http.MethodHead}
	}
	d.uncounted[path] = true
	e.Match(methods, path, echo.WrapHandler(h))
}

// The routes that take long on purpose.
const (
	ordersPath = "/api/orders"
	eventsPath = "/api/events"
)

// arrivalKey is where number leaves the number of the request, counted over all that arrived for the app.
const arrivalKey = "arrival"

// number counts what arrives for the app, from outside of everything, so that an order can tell as which arrival it came.
func (d *demo) number(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !d.uncounted[c.Path()] {
			c.Set(arrivalKey, d.arrivals.Add(1))
		}
		return next(c)
	}
}

// items is the ordinary request: one slot for 20 ms.
func (a *app) items(c echo.Context) error {
	a.backend.Work(backend.Item)
	return c.JSON(http.StatusOK, map[string][]string{"items": {"anchor", "buoy", "compass"}})
}

// report is the expensive request: it keeps a slot for 100 ms.
func (a *app) report(c echo.Context) error {
	a.backend.Work(backend.Report)
	return c.JSON(http.StatusOK, map[string]any{"report": "all is well", "cost": 5})
}

// order numbers orders in the order in which they get their turn, and says which arrival it was, so that everybody can see
// that nobody was overtaken.
func (a *app) order(c echo.Context) error {
	number := a.orders.Add(1)
	a.backend.Work(backend.Item)
	return c.JSON(http.StatusCreated, map[string]any{"order": number, "arrival": c.Get(arrivalKey)})
}

// events streams the time, once a second, until the client leaves or the demo stops.
func (a *app) events(c echo.Context) error {
	w := c.Response()
	w.Header().Set(echo.HeaderContentType, "text/event-stream")
	w.Header().Set(echo.HeaderCacheControl, "no-store")
	w.WriteHeader(http.StatusOK)
	t := time.NewTicker(a.every)
	defer t.Stop()
	for n := 1; ; n++ {
		fmt.Fprintf(w, "id: %d\nevent: tick\ndata: {\"busy_slots\": %d}\n\n", n, a.backend.Busy())
		if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nil // the client is gone
		}
		select {
		case <-t.C:
		case <-c.Request().Context().Done():
			return nil
		case <-a.stopping:
			return nil
		}
	}
}
