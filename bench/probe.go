package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/load"
	"github.com/spillway-go/spillway/bench/internal/probe"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/scenarios"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// quotaFlags say which quota the probes expect.
type quotaFlags struct {
	capacity, refill int64
}

func (q *quotaFlags) flags(f *flag.FlagSet) {
	f.Int64Var(&q.capacity, "quota", 0, "for probes: how many requests a client has at once; 0 is the scenario's")
	f.Int64Var(&q.refill, "refill", 0, "for probes: how many requests a client gets back each second; 0 is the scenario's")
}

func (q *quotaFlags) apply(p *scenarios.Probe) error {
	if q.capacity < 0 || q.capacity == 1 || q.refill < 0 || q.capacity > 10_000 || q.refill > 1000 {
		return usagef("-quota is from 2 to 10000 and -refill from 1 to 1000 per second")
	}
	if q.capacity > 0 {
		p.Capacity = q.capacity
	}
	if q.refill > 0 {
		p.Refill = q.refill
	}
	return nil
}

// probe makes the exact checks in real time.
func (r *runFlags) probe(ctx context.Context, s *scenarios.Scenario, out io.Writer) (int, error) {
	if err := r.quota.apply(s.Probe); err != nil {
		return exitUsage, err
	}
	file := &results.File{Command: "run", Env: results.ReadEnv(), Settings: map[string]string{"scenario": s.ID}}
	name := fmt.Sprintf("bench-%d-", time.Now().UnixNano())
	real := &probe.Real{Method: r.adhoc.method, Path: r.adhoc.path, Body: r.adhoc.body, Timeout: 5 * time.Second}
	targets := []*probe.Target{{Asker: real, Arm: judge.Target, Mode: "remote", Real: true, Single: r.target2 == "", Name: name}}
	if r.target == "" {
		targets = nil
		for _, arm := range chosen(r.arms, s) {
			servers, end, err := twoServers(s.Probe, arm)
			if err != nil {
				return exitUsage, err
			}
			defer end()
			own := &probe.Real{Servers: servers, Method: "GET", Path: "/", Timeout: 5 * time.Second}
			targets = append(targets, &probe.Target{Asker: own, Arm: arm, Mode: "handler", Real: true, Name: name})
		}
	}
	for _, url := range []string{r.target, r.target2} {
		if url == "" {
			continue
		}
		h, err := load.NewHTTP(url, r.remote, 64)
		if err != nil {
			return exitUsage, usage{err}
		}
		defer h.Close()
		if err := knock(ctx, h, url, &load.Shot{Method: real.Method, Path: real.Path, Client: name + "knock"}); err != nil {
			return exitInvalid, err
		}
		real.Servers = append(real.Servers, h)
	}
	for _, t := range targets {
		verdicts, err := probe.Run(ctx, s, t)
		file.Verdicts = append(file.Verdicts, verdicts...)
		if err != nil {
			file.Partial = true
			code, failed := conclude(file, &r.outputs, out)
			return code, errors.Join(err, failed)
		}
	}
	return conclude(file, &r.outputs, out)
}

// twoServers makes two servers in this process that share their quotas.
func twoServers(q *scenarios.Probe, arm string) (servers []load.Sender, end func(), err error) {
	var plain http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if arm != "spillway" {
		return []load.Sender{load.Direct{Handler: plain}, load.Direct{Handler: plain}}, func() {}, nil
	}
	cfg := probe.Settings(q)
	cfg.Health.Off = true
	if cfg.Store, err = limits.NewMemory(limits.MemoryConfig{}); err != nil {
		return nil, nil, err
	}
	var open []*shed.Shedder
	for range 2 {
		s, err := shed.New(cfg)
		if err != nil {
			return nil, nil, err
		}
		open = append(open, s)
		servers = append(servers, load.Direct{Handler: middleware.Shed(s)(plain)})
	}
	return servers, func() {
		for _, s := range open {
			s.Close()
		}
	}, nil
}

// probeInVirtualTime makes the exact checks in virtual time, for all arms.
func probeInVirtualTime(ctx context.Context, s *scenarios.Scenario, arms []string, flaw string) (*results.File, error) {
	file := &results.File{Command: "sim", Settings: map[string]string{"scenario": s.ID}}
	for _, arm := range arms {
		v, err := probe.NewVirtual(s.Probe, arm, flaw)
		if err != nil {
			return nil, err
		}
		verdicts, err := probe.Run(ctx, s, &probe.Target{Asker: v, Arm: arm, Mode: "sim"})
		if err != nil {
			return nil, err
		}
		file.Verdicts = append(file.Verdicts, verdicts...)
	}
	if slices.Contains(arms, "spillway") {
		v, err := probe.Refund(s, flaw)
		if err != nil {
			return nil, err
		}
		file.Verdicts = append(file.Verdicts, v)
	}
	return file, nil
}
