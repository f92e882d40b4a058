package gameday

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// How late the machine may be before verdicts about time say nothing: a hundredth by more than lateness, or one by more than
// still, for what waits meanwhile is late, and what the gateways measure meanwhile is no work of the service.
const (
	lateness = deadline / 10
	still    = deadline / 4
)

// othersShare is the share of the machine's CPU time that others may use. Beyond it the gateways and the service wait for a CPU at any
// moment.
const othersShare = .5

// judgeMachine says why nothing can be said about time, if that is so. None of what it looks at has to do with a gateway: when
// requests left, how long a request took that meets none, how late the service ended work whose end it had booked, and how much of
// the machine was in use by programs that are not the day's.
func (s *scene) judgeMachine() string {
	var lags []time.Duration
	for _, one := range s.of() {
		lags = append(lags, one.lag)
	}
	slow := func(what string, q float64, all []time.Duration, bound time.Duration) string {
		if took := quantile(all, q); took > bound {
			return fmt.Sprintf("%s %v (p%.3g)", what, took.Round(time.Millisecond), q*100)
		}
		return ""
	}
	unsent, others := "", ""
	if n := s.unsent.Load(); float64(n) > .01*float64(len(lags)) {
		unsent = fmt.Sprintf("%d requests could not be sent", n)
	}
	if s.others > othersShare {
		others = fmt.Sprintf("other programs used %.0f %% of it", s.others*100)
	}
	return cmp.Or(
		slow("requests left late by", .99, lags, lateness),
		slow("a direct probe took", .99, s.pings, lateness),
		slow("requests left late by", 1, lags, still),
		slow("a direct probe took", 1, s.pings, still),
		slow("the service ended work late by", 1, []time.Duration{s.serviceLate}, still),
		unsent, others,
	)
}

// cpuTime is CPU time in the kernel's ticks: all that there was, what was used, and what the day's own programs used.
type cpuTime struct{ all, used, own float64 }

// cpuTime reads it where there is a /proc; elsewhere it is nothing.
func (s *stage) cpuTime() (t cpuTime) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTime{}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil || i >= 8 { // guests are in user already
			break
		}
		t.all += n
		if i != 3 && i != 4 { // idle, and waiting for a disk
			t.used += n
		}
	}
	pids := []int{os.Getpid(), s.service.cmd.Process.Pid}
	for _, g := range s.gateways {
		pids = append(pids, g.cmd.Process.Pid)
	}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] { // utime and stime
			n, _ := strconv.ParseFloat(field, 64)
			t.own += n
		}
	}
	return t
}

// othersSince is the share of the machine that was in use by others since an earlier time.
func (t cpuTime) othersSince(before cpuTime) float64 {
	if t.all <= before.all {
		return 0
	}
	return (t.used - before.used - max(0, t.own-before.own)) / (t.all - before.all)
}
