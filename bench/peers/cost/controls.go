package main

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/bench/peers/gates"
	"github.com/spillway-go/spillway/limits/concurrency"
	"github.com/spillway-go/spillway/shed"
)

// opener prepares an operation that tells whether it did what it is about, and what ends it.
type opener func() (once func() bool, closing func(), err error)

// control is an overload control: pass lets one request in and out again, refuse is full and refuses one.
type control struct {
	name, module string
	pass, refuse opener
}

const own = "Spillway"

var controls = []control{
	{own, "github.com/spillway-go/spillway", passSpillway, refuseSpillway},
	{"Spillway, behind a full line", "github.com/spillway-go/spillway", nil, refuseSpillwayLine},
	{"failsafe-go adaptive limiter", "github.com/failsafe-go/failsafe-go", passFailsafe, refuseFailsafe},
	{"go-concurrency-limits Gradient2", "github.com/platinummonkey/go-concurrency-limits", passGCL, refuseGCL},
	{"aegis BBR", "github.com/go-kratos/aegis", passBBR, refuseBBR},
	{"go-zero shedder", "github.com/zeromicro/go-zero", passZero, refuseZero},
	{"x/sync semaphore", "golang.org/x/sync", passSemaphore, refuseSemaphore},
	{"channel of permits", "", passChannel, refuseChannel},
}

func nothing() {}

// openShedder opens a shedder without rules; health is off, for it would see what the comparison itself uses.
func openShedder(cfg shed.Config) (*shed.Shedder, func(), error) {
	cfg.Health.Off = true
	s, err := shed.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	return s, func() { _ = s.Close() }, nil
}

func passSpillway() (func() bool, func(), error) {
	s, closing, err := openShedder(shed.Config{})
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	return func() bool {
		permit, err := s.Admit(ctx, shed.Request{})
		if err != nil {
			return false
		}
		permit.Done(shed.Success)
		return true
	}, closing, nil
}

// refuseSpillway lets nobody wait.
func refuseSpillway() (func() bool, func(), error) {
	s, closing, err := openShedder(shed.Config{
		Concurrency: concurrency.Config{Algorithm: concurrency.Fixed, Initial: 1},
		Queue:       shed.Queue{Capacity: -1},
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := s.Admit(context.Background(), shed.Request{}); err != nil {
		return nil, nil, err
	}
	return refused(s, shed.Request{}), closing, nil
}

// refuseSpillwayLine has one running and as many waiting as by default, all of whom matter more than those who are refused,
// so that nobody gives way.
func refuseSpillwayLine() (func() bool, func(), error) {
	s, closing, err := openShedder(shed.Config{
		Concurrency: concurrency.Config{Algorithm: concurrency.Fixed, Initial: 1},
		Queue:       shed.Queue{MaxWait: time.Hour},
		Routes: []shed.Route{
			{Name: "vital", Match: "/vital", Priority: shed.CriticalPlus},
			{Name: "background", Match: "/background", Priority: shed.Sheddable},
		},
	})
	if err != nil {
		return nil, nil, err
	}
	for range 1 + shed.DefaultQueueCapacity {
		go func() { _, _ = s.Admit(context.Background(), shed.Request{Route: "vital"}) }() // ends when s is closed
	}
	for s.Status().Waiting < shed.DefaultQueueCapacity {
		time.Sleep(time.Millisecond)
	}
	return refused(s, shed.Request{Route: "background"}), closing, nil
}

// refused asks for what s has to refuse. Should s let it wait instead, it gives up after a minute, which is no refusal.
func refused(s *shed.Shedder, request shed.Request) func() bool {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Minute, cancel)
	return func() bool {
		_, err := s.Admit(ctx, request)
		_, ok := err.(*shed.Rejection)
		return ok
	}
}

func passFailsafe() (func() bool, func(), error) {
	l := adaptivelimiter.NewWithDefaults[any]()
	return func() bool {
		permit, ok := l.TryAcquirePermit()
		if ok {
			permit.Record()
		}
		return ok
	}, nothing, nil
}

func refuseFailsafe() (func() bool, func(), error) {
	l := adaptivelimiter.NewBuilder[any]().WithLimits(1, 1, 1).Build()
	l.TryAcquirePermit()
	return func() bool { _, ok := l.TryAcquirePermit(); return !ok }, nothing, nil
}

func passGCL() (func() bool, func(), error) {
	l, err := gates.NewGCL(limit.NewDefaultGradient2Limit("gradient2", limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance))
	ctx := context.Background()
	return func() bool {
		listener, ok := l.Acquire(ctx)
		if ok {
			listener.OnSuccess()
		}
		return ok
	}, nothing, err
}

func refuseGCL() (func() bool, func(), error) {
	l, err := gates.NewGCL(limit.NewFixedLimit("fixed", 1, core.EmptyMetricRegistryInstance))
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	l.Acquire(ctx)
	return func() bool { _, ok := l.Acquire(ctx); return !ok }, nothing, nil
}

func passBBR() (func() bool, func(), error) {
	l := bbr.NewLimiter()
	return func() bool {
		done, err := l.Allow()
		if err == nil {
			done(ratelimit.DoneInfo{})
		}
		return err == nil
	}, nothing, nil
}

// refuseBBR acts whatever the processors do, and has more running than it has seen to be possible.
func refuseBBR() (func() bool, func(), error) {
	l := bbr.NewLimiter(bbr.WithCPUThreshold(0))
	for range 2 {
		if _, err := l.Allow(); err != nil {
			return nil, nil, err
		}
	}
	return func() bool { _, err := l.Allow(); return err != nil }, nothing, nil
}

func passZero() (func() bool, func(), error) {
	logx.Disable()
	l := load.NewAdaptiveShedder()
	return func() bool {
		promise, err := l.Allow()
		if err == nil {
			promise.Pass()
		}
		return err == nil
	}, nothing, nil
}

// refuseZero acts whatever the processors do, and has far more running, also in the moving average, than it has seen to be
// possible. Logging, which it does for each refusal, is off.
func refuseZero() (func() bool, func(), error) {
	logx.Disable()
	l := load.NewAdaptiveShedder(load.WithCpuThreshold(0))
	var promises []load.Promise
	for range 200 {
		if p, err := l.Allow(); err == nil {
			promises = append(promises, p)
		}
	}
	if len(promises) < 40 {
		return nil, nil, errors.New("go-zero refuses before it is full")
	}
	for _, p := range promises[:20] {
		p.Fail()
	}
	return func() bool { _, err := l.Allow(); return err != nil }, nothing, nil
}

func passSemaphore() (func() bool, func(), error) {
	s := semaphore.NewWeighted(1000)
	return func() bool {
		ok := s.TryAcquire(1)
		if ok {
			s.Release(1)
		}
		return ok
	}, nothing, nil
}

func refuseSemaphore() (func() bool, func(), error) {
	s := semaphore.NewWeighted(1)
	s.TryAcquire(1)
	return func() bool { return !s.TryAcquire(1) }, nothing, nil
}

func passChannel() (func() bool, func(), error) {
	permits := make(chan struct{}, 1000)
	return func() bool {
		select {
		case permits <- struct{}{}:
			<-permits
			return true
		default:
			return false
		}
	}, nothing, nil
}

func refuseChannel() (func() bool, func(), error) {
	permits := make(chan struct{}, 1)
	permits <- struct{}{}
	return func() bool {
		select {
		case permits <- struct{}{}:
			return false
		default:
			return true
		}
	}, nothing, nil
}
