package main

import (
	"net"
	"net/http"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-chi/httprate"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/middleware/echomw"
	"github.com/spillway-go/spillway/shed"
)

// contender is a middleware around the same handler. open returns it with room for everybody, or used up after one request; status
// is how it refuses.
type contender struct {
	name, module string
	status       int
	open         func(wide bool) (h http.Handler, closing func(), err error)
}

const (
	bare    = "bare handler"
	echoOwn = "bare handler in Echo"
	own     = "Spillway"
	httpr   = "go-chi/httprate"
)

const spillway = "github.com/spillway-go/spillway"

// contenders lists who is compared. All tell clients apart by the address of their peer.
var contenders = []contender{
	{bare, "", 0, openBare},
	{own, spillway, 429, openSpillway},
	{"Spillway, no place", spillway, 503, openFull},
	{httpr, "github.com/go-chi/httprate", 429, openHTTPRate},
	{"tollbooth", "github.com/didip/tollbooth/v8", 429, openTollbooth},
	{"ulule/limiter", "github.com/ulule/limiter/v3", 429, openUlule},
	{"throttled", "github.com/throttled/throttled/v2", 429, openThrottled},
	{"failsafehttp rate limiter", "github.com/failsafe-go/failsafe-go", 429, openFailsafe},
	{"failsafehttp adaptive limiter", "github.com/failsafe-go/failsafe-go", 429, openFailsafeAdaptive},
	{echoOwn, "github.com/labstack/echo/v4", 0, openEchoBare},
	{"Spillway in Echo", spillway, 429, openSpillwayEcho},
	{"Echo's limiter", "github.com/labstack/echo/v4", 429, openEcho},
}

// handler is what everybody protects.
var handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(body)
})

var body = []byte("ok")

func nothing() {}

// most is a quota that nothing here uses up.
const most = 1 << 30

func quota(wide bool) int {
	if wide {
		return most
	}
	return 1
}

func openBare(bool) (http.Handler, func(), error) { return handler, nothing, nil }

// openShedder opens one rule, the adaptive gate and the standard fields, as a service has them; health is off, for it would see what
// the comparison itself uses.
func openShedder(wide bool) (*shed.Shedder, error) {
	cfg := shed.Config{
		Clients: shed.Clients{Identify: []string{"ip"}},
		Limits: []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{
			Capacity: int64(quota(wide)), Refill: refill(wide)}}},
	}
	cfg.Health.Off = true
	return shed.New(cfg)
}

func openSpillway(wide bool) (http.Handler, func(), error) {
	s, err := openShedder(wide)
	if err != nil {
		return nil, nil, err
	}
	return middleware.Shed(s)(handler), func() { _ = s.Close() }, nil
}

func openSpillwayEcho(wide bool) (http.Handler, func(), error) {
	s, err := openShedder(wide)
	if err != nil {
		return nil, nil, err
	}
	return inEcho(echomw.Shed(s)), func() { _ = s.Close() }, nil
}

// openFull has one place, which is taken, and no line.
func openFull(wide bool) (http.Handler, func(), error) {
	if wide {
		return nil, nil, nil
	}
	cfg := shed.Config{
		Concurrency: concurrency.Config{Algorithm: concurrency.Fixed, Initial: 1}, Queue: shed.Queue{Capacity: -1},
		Clients: shed.Clients{Identify: []string{"ip"}},
		Limits:  []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: most, Refill: refill(true)}}},
	}
	cfg.Health.Off = true
	s, err := shed.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	started, end := make(chan struct{}), make(chan struct{})
	first := true
	h := middleware.Shed(s)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(started)
		<-end
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first { // takes the place
			first = false
			go h.ServeHTTP(&response{header: http.Header{}}, newRequest())
			<-started
			handler(w, r)
			return
		}
		h.ServeHTTP(w, r)
	}), func() { close(end); _ = s.Close() }, nil
}

func openHTTPRate(wide bool) (http.Handler, func(), error) {
	return httprate.LimitBy(quota(wide), time.Hour, byPeer)(handler), nothing, nil
}

// byPeer is what httprate's documentation asks for: the address, as far as it is trusted; here there is no proxy.
func byPeer(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}

func openTollbooth(wide bool) (http.Handler, func(), error) {
	max := float64(most)
	if !wide {
		max = 1.0 / 3600
	}
	l := tollbooth.NewLimiter(max, nil).SetIPLookup(tollboothlimiter.IPLookup{Name: "RemoteAddr"})
	return tollbooth.LimitHandler(l, handler), nothing, nil
}

func openUlule(wide bool) (http.Handler, func(), error) {
	l := limiter.New(ululestore.NewStoreWithOptions(limiter.StoreOptions{CleanUpInterval: time.Hour}),
		limiter.Rate{Period: time.Hour, Limit: int64(quota(wide))})
	return stdlib.NewMiddleware(l).Handler(handler), nothing, nil
}

func openThrottled(wide bool) (http.Handler, func(), error) {
	store, err := throttledstore.NewCtx(0)
	if err != nil {
		return nil, nil, err
	}
	rate := throttled.RateQuota{MaxRate: throttled.PerHour(1), MaxBurst: 0}
	if wide {
		rate = throttled.RateQuota{MaxRate: throttled.PerSec(1_000_000), MaxBurst: 1 << 20}
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, rate)
	if err != nil {
		return nil, nil, err
	}
	t := throttled.HTTPRateLimiterCtx{RateLimiter: l, VaryBy: &throttled.VaryBy{RemoteAddr: true}}
	return t.RateLimit(handler), nothing, nil
}

func openFailsafe(wide bool) (http.Handler, func(), error) {
	l := ratelimiter.NewBursty[*http.Response](uint(quota(wide)), time.Hour)
	return failsafehttp.NewHandler(handler, l), nothing, nil
}

func openFailsafeAdaptive(wide bool) (http.Handler, func(), error) {
	if !wide {
		return nil, nil, nil
	}
	return failsafehttp.NewHandler(handler, adaptivelimiter.NewWithDefaults[*http.Response]()), nothing, nil
}

// inEcho is the handler as Echo's users write it.
func inEcho(m ...echo.MiddlewareFunc) http.Handler {
	e := echo.New()
	e.Use(m...)
	e.GET("/api/items", func(c echo.Context) error { return c.Blob(http.StatusOK, "text/plain; charset=utf-8", body) })
	return e
}

func openEchoBare(bool) (http.Handler, func(), error) { return inEcho(), nothing, nil }

func openEcho(wide bool) (http.Handler, func(), error) {
	cfg := echomiddleware.RateLimiterMemoryStoreConfig{Rate: 1.0 / 3600, Burst: 1, ExpiresIn: time.Hour}
	if wide {
		cfg.Rate, cfg.Burst = 1_000_000, most
	}
	return inEcho(echomiddleware.RateLimiter(echomiddleware.NewRateLimiterMemoryStoreWithConfig(cfg))), nothing, nil
}

func refill(wide bool) limits.Rate {
	if wide {
		return limits.PerSecond(1000)
	}
	return limits.PerHour(1)
}
