package main

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/spillway-go/spillway/bench/internal/arms"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// The measurement of the cost: so many blocks, in each of which so many requests with and without protection take turns.
const (
	overheadBlocks = 200
	overheadBlock  = 200
)

// overhead measures what the middleware costs a request, in this process: blocks of requests with and without it take turns,
// so that whatever else the machine does hits both, and the medians of the blocks are compared.
func overhead(ctx context.Context, s *scenarios.Scenario) (*measure.Run, error) {
	cfg, err := arms.Settings(s)
	if err != nil {
		return nil, err
	}
	shedder, err := shed.New(cfg)
	if err != nil {
		return nil, err
	}
	defer shedder.Close()
	plain := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	handlers := []http.Handler{plain, middleware.Shed(shedder)(plain)}
	request, err := http.NewRequest(http.MethodGet, "/api", nil)
	if err != nil {
		return nil, err
	}
	request.RemoteAddr = "127.0.0.1:1"
	request.Header.Set("X-Api-Key", "client")
	run := measure.NewRecorder(s, "spillway", "handler", 1, 1).Finish()
	times, drops := [2][]time.Duration{}, 0
	for range overheadBlocks {
		if ctx.Err() != nil {
			run.Partial = true
			break
		}
		for i, h := range handlers {
			start := time.Now()
			for range overheadBlock {
				w := quiet{header: make(http.Header)}
				h.ServeHTTP(&w, request)
				if w.status != http.StatusOK {
					drops++
				}
			}
			times[i] = append(times[i], time.Since(start)/overheadBlock)
		}
	}
	medians := [2]float64{}
	for i := range times {
		slices.Sort(times[i])
		if n := len(times[i]); n > 0 {
			medians[i] = float64(times[i][n/2]) / float64(time.Microsecond)
		}
	}
	run.Extra = map[string]float64{"overhead_us": medians[1] - medians[0], "overhead_drops": float64(drops)}
	return run, nil
}

// quiet is a response of which only the status is kept.
type quiet struct {
	header http.Header
	status int
}

func (q *quiet) Header() http.Header         { return q.header }
func (q *quiet) Write(b []byte) (int, error) { return len(b), nil }
func (q *quiet) WriteHeader(status int)      { q.status = status }
