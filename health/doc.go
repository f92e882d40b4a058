// Package health answers one question: how hard pressed are we? It watches the CPU this process may use and folds what it
// sees into one pressure between 0 (at ease) and 1 (nothing left). The gate of package shed caps concurrency by it; nothing
// here refuses anything.
//
//	s, err := health.New(health.Config{})
//	...
//	s.Start()
//	defer s.Close()
//	if p, known := s.Pressure(); known { ... }
//
// [Sampler.Pressure] is what decisions are made from: lock-free and free of allocations. [Sampler.Status] is the same with
// a line for each signal, for people.
//
// # Signals
//
//	signal    value                                      low   high
//	cpu       CPU time used ÷ (elapsed × cores allowed)  0.75  0.95
//	throttle  throttled periods ÷ periods of the quota   0.10  0.50
//
// A value is sampled every 250 ms, rated with the time that really passed, and smoothed: an exponential average with a
// time constant of 0.7 s that starts from the mean of its first three samples. Its pressure is
//
//	p = clamp((value − low) ÷ (high − low), 0, 1)
//
// and the total is the maximum, not the mean, over the signals that have an opinion: one exhausted resource is enough.
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
// # What is not known
//
// An error is no opinion: never 0, which would open the gate without a trace, and never 1, which would be an outage made
// by the measurement itself. A signal is
//
//	warming   too little has been seen; or WarmUp (60 s) is not over, in which health only observes
//	ok        its value is at most three intervals old
//	stale     its source is silent; the last value holds, and nobody should cut or raise because of it
//	absent    there is nothing of its kind here, such as throttling without a quota
//	failed    silent for 10 s; out of the maximum until it returns
//
// A sample is discarded, and counted by [Reason], if a counter went back, if no or too little time passed (two samples within
// one tick of a counter read 0 or 100 %), if the value is not finite, or if a source is unreadable or not in its documented
// form. With every signal gone the pressure is unknown and the caller goes on as if there were no health.
//
// # Bounds
//
// One goroutine between Start and Close, about ten microseconds of CPU per sample, four open files for each level of the cgroup
// tree at most. Files of cgroups are read up to 4 KiB, the two tables of /proc up to 4 MiB.
//
// # Not here
//
// No HTTP handlers, no decision, no smoothing of the cap: those belong to packages middleware and shed. No load average and
// no host CPU, which tell about others; no GOMAXPROCS as a limit, which is the quota rounded up. On Windows and macOS limits
// of jobs and containers are not seen: set Config.CPULimit there.
//
// Everything exported is safe for concurrent use, except that a Config must not be changed while New reads it.
package health
