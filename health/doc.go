// Package health answers one question: how hard pressed are we? It watches what this process may use, CPU, memory and time,
// and folds what it sees into one pressure between 0 (at ease) and 1 (nothing left). The gate of package shed caps concurrency
// by it; nothing here refuses anything.
//
//	s, err := health.New(health.Config{})
//	...
//	s.Start()
//	defer s.Close()
//	if p, known := s.Pressure(); known { ... }
//
// [Sampler.Pressure] is what decisions are made from: lock-free and free of allocations. [Sampler.PressureOf] is the same for
// what one route needs. [Sampler.Status] has a line for each signal, for people.
//
// # Signals
//
//	signal        value                                                   low     high    role
//	cpu           CPU time used ÷ (elapsed × cores allowed)               0.75    0.95    primary
//	throttle      throttled periods ÷ periods of the CPU quota            0.10    0.50    primary
//	memory        (charged − inactive file cache − garbage) ÷ limit       0.85    0.95    primary
//	heap          (live heap + stacks) ÷ GOMEMLIMIT                       0.70    0.90    primary
//	gc_limiter    1 for 5 s after the collector hit its bound, else 0     0       1       primary
//	memory_stall  share of 10 s in which all waited for memory            off             primary
//	a check       whatever it returns                                     0       1       primary, or scoped
//	scheduling    99th percentile of the wait of runnable goroutines      20 ms   100 ms  supporting
//	timer_lag     worst delay of the sampler's timer in 2 s               50 ms   100 ms  supporting
//	a pool        callers waiting ÷ connections                           0.5     2       scoped
//	a dependency  failed calls ÷ all calls of 10 s                        yours           scoped
//	host_cpu      share of the machine's CPU time in use                  off             observing
//
// A value is sampled every 250 ms, rated with the time that really passed, and smoothed: an exponential average with a
// time constant of 0.7 s that starts from the mean of its first three samples. Its pressure is
//
//	p = clamp((value − low) ÷ (high − low), 0, 1)
//
// and the total is the maximum, not the mean, over the primary signals that have an opinion: one exhausted resource is enough.
//
// A supporting signal is part of it only while cpu or throttle has a pressure above 0. Timers and goroutines are late on any
// crowded machine, also while we are idle, and what neighbours do is not ours to shed. A scoped signal is about a dependency
// and part of PressureOf for the routes that need it; shedding everything because one database is slow would be an outage of
// our own making.
//
// # Sources
//
// The scope is us: the cgroup, then the process; never the host, whose load is mostly not ours to shed. Cores allowed are
// the smallest quota ÷ period of our cgroup and its ancestors (v1, v2 and hosts with both), at most the CPUs of the affinity
// mask, all read anew with each sample; or Config.CPULimit. Where a quota decides, the CPU time is that of the cgroup with
// this quota, as long as this process makes most of it: what our children use throttles us too. If others make half of it
// or more, or if no quota decides, it is this process's own (getrusage; on systems without it gopsutil's process times).
// Throttling is cpu.stat of the same cgroup, and counts only while the cgroup is ours.
//
// Memory is that of the cgroup with the smallest limit, memory.max or memory.high, and counts only while this process holds
// most of it. Garbage, which is what the Go runtime uses beyond live heap and stacks, is left out where GOMEMLIMIT bounds it.
// The runtime is asked through runtime/metrics, which stops nothing.
//
// # What is not known
//
// An error is no opinion: never 0, which would open the gate without a trace, and never 1, which would be an outage made
// by the measurement itself. A signal is
//
//	warming   too little has been seen; or WarmUp (60 s) is not over, in which health only observes
//	ok        its value is at most three intervals old
//	stale     its source is silent; the last value holds, and nobody should cut or raise because of it
//	absent    there is nothing of its kind here, such as throttling without a quota, or too few events to tell
//	failed    silent for 10 s; out of the maximum until it returns
//
// A sample is discarded, and counted by [Reason], if a counter went back, if no or too little time passed (two samples within
// one tick of a counter read 0 or 100 %), if more than 5 s passed, if the value is not finite, or if a source is unreadable or
// not in its documented form. Ages are seen by the readers, so a sampler that is not run at all goes stale as well. With every
// signal gone the pressure is unknown and the caller goes on as if there were no health.
//
// # Bounds
//
// One goroutine between Start and Close and one for each check, about thirty microseconds of CPU per sample, six open files
// for each level of the cgroup tree at most. Files of cgroups are read up to 16 KiB, the tables of /proc up to 4 MiB. Windows
// of signals hold at most 42 moments.
//
// # Not here
//
// No HTTP handlers, no decision, no smoothing of the cap: those belong to packages middleware and shed. No load average, which
// tells about others a minute ago; no GOMAXPROCS as a limit, which is the quota rounded up. On Windows and macOS limits of jobs
// and containers are not seen: set Config.CPULimit there.
//
// Everything exported is safe for concurrent use, except that a Config must not be changed while New reads it.
package health
