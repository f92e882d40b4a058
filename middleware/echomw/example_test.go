package echomw_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/labstack/echo/v4"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware/echomw"
	"github.com/spillway-go/spillway/shed"
)

// Two requests at once and five a second for each client; the third is refused by Echo's own error handler.
func Example() {
	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 2, Refill: limits.PerSecond(5)}}},
		Health: health.Config{Off: true}, // a real service leaves it on
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	e := echo.New()
	e.Use(echomw.Shed(s))
	e.GET("/items", func(c echo.Context) error { return c.String(200, "ok\n") })

	for range 3 {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest("GET", "/items", nil))
		fmt.Printf("%d RateLimit: %s Retry-After: %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 RateLimit: "per-client";r=1;t=1 Retry-After: ""
	// 200 RateLimit: "per-client";r=0;t=1 Retry-After: ""
	// 429 RateLimit: "per-client";r=0;t=1 Retry-After: "1"
}

// A configuration that comes from a file is better refused with an error than with a panic.
func ExampleConfig_ToMiddleware() {
	s, err := shed.New(shed.Config{
		Routes: []shed.Route{{Name: "write", Match: "POST orders"}},
		Health: health.Config{Off: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	_, err = echomw.Config{Shedder: s}.ToMiddleware()
	fmt.Println(err != nil)
	// Output: true
}
