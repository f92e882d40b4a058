package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/bench/internal/arms"
	"github.com/spillway-go/spillway/bench/internal/load"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// local is one run in real time, against the built-in app in this process or against any other sender.
type local struct {
	scenario  *scenarios.Scenario
	arm, mode string
	level     float64
	seed      uint64
	inFlight  int
	progress  func(int, measure.Point, int)
}

// headStart is how long after its making a run begins, so that everything is in place when its first request is due.
const headStart = 50 * time.Millisecond

// run plays the scenario against the built-in app behind the arm.
func (l *local) run(ctx context.Context) (*measure.Run, error) {
	start := time.Now().Add(headStart)
	recorder := l.recorder()
	target, err := arms.New(l.scenario, l.arm, start, recorder.Worked)
	if err != nil {
		return nil, usage{err}
	}
	defer target.Close()
	if l.mode == "handler" {
		run := l.play(ctx, load.Direct{Handler: target.Handler}, recorder, start, target.Gauge)
		run.Extra = target.Extras()
		return run, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: target.Handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close, which is its only error
	defer server.Close()
	sender, err := load.NewHTTP("http://"+listener.Addr().String(), false, load.Needed(l.scenario, l.level))
	if err != nil {
		return nil, err
	}
	defer sender.Close()
	run := l.play(ctx, sender, recorder, start, target.Gauge)
	run.Extra = target.Extras()
	return run, nil
}

// against plays the scenario against another sender.
func (l *local) against(ctx context.Context, sender load.Sender) *measure.Run {
	return l.play(ctx, sender, l.recorder(), time.Now().Add(headStart), nil)
}

// remote plays the scenario against somebody else's server; anywhere allows one that is not on this machine.
func (l *local) remote(ctx context.Context, target string, anywhere bool) (*measure.Run, error) {
	sender, err := load.NewHTTP(target, anywhere, load.Needed(l.scenario, l.level))
	if err != nil {
		return nil, usage{err}
	}
	defer sender.Close()
	if err := knock(ctx, sender, target, &load.Shot{Method: "GET", Path: firstPath(l.scenario), Client: "bench"}); err != nil {
		return nil, err
	}
	return l.against(ctx, sender), nil
}

func (l *local) recorder() *load.Recorder {
	return &load.Recorder{Recorder: measure.NewRecorder(l.scenario, l.arm, l.mode, l.level, l.seed)}
}

func (l *local) play(ctx context.Context, sender load.Sender, r *load.Recorder, start time.Time, gauge func() (int, int, int)) *measure.Run {
	return load.Run(ctx, load.Config{
		Scenario: l.scenario, Arm: l.arm, Mode: l.mode, Level: l.level, Seed: l.seed, Sender: sender, Built: l.mode != "remote",
		Recorder: r, MaxInFlight: l.inFlight, Start: start, Gauge: gauge, Progress: l.progress,
	})
}
