package health

import (
	"database/sql"
	"fmt"
	"time"
)

// Pool is a database/sql connection pool that some routes need.
type Pool struct {
	// Name is the signal's name, such as "orders_db"; required.
	Name string
	// Stats returns the pool's counters, usually the method value db.Stats; required. It is called with each sample and must
	// not block. Pools of another kind fill in MaxOpenConnections, InUse, WaitCount and WaitDuration (pgx: MaxConns,
	// AcquiredConns, EmptyAcquireCount, EmptyAcquireWaitTime).
	Stats func() sql.DBStats
	// Queued bounds callers that wait for a connection ÷ MaxOpenConnections; the zero value means {0.5, 2}.
	Queued Thresholds
	// Routes are the names of the routes that need the pool; at least one.
	Routes []string
}

var defaultQueued = Thresholds{Low: 0.5, High: 2}

func (p *Pool) prepare() error {
	if p.Stats == nil {
		return fmt.Errorf("health: pool %s has no Stats; set it to db.Stats", p.Name)
	}
	if p.Queued == (Thresholds{}) {
		p.Queued = defaultQueued
	}
	if p.Queued.Low < 0 {
		return fmt.Errorf("health: pool %s thresholds have a low of %v; use 0 or more callers for each connection", p.Name, p.Queued.Low)
	}
	return p.Queued.checkNumbers("pool "+p.Name, defaultQueued)
}

// stuckAfter is how long all connections are in use and nobody who waits gets one until the pool counts as stuck.
const stuckAfter = 2 * time.Second

// pool is the mean number of callers that waited for a connection, ÷ the number of connections. By Little's law the mean is
// the time they waited together ÷ the time that passed: ΔWaitDuration ÷ Δt. How often somebody waited says nothing, it rises
// in any pool that is used at all.
//
// A wait is credited when it ends, so a pool in which none ends reads 0. Therefore, while all connections are in use and no
// wait ends, those that began since the last one ended are the ones that wait; and if that lasts for stuckAfter, the pool is
// stuck, however few they are.
type pool struct {
	label  string
	stats  func() sql.DBStats
	queued Thresholds

	last    sql.DBStats
	at      time.Time
	began   int64     // waits that began since one ended
	stuckAt time.Time // since when no wait has ended that should; zero: nothing of the kind
}

func (p *pool) name() string { return p.label }

func (p *pool) source() string { return "callers that wait for a connection, for each connection" }

func (p *pool) measure(round time.Time) (value float64, dt time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			value, dt, err = 0, 0, fmt.Errorf("the pool's Stats panicked: %.100v", r)
		}
	}()
	now, last := p.stats(), p.last
	dt = round.Sub(p.at)
	first := p.at.IsZero()
	if !first && dt <= 0 {
		return 0, 0, errClockStood
	}
	p.last, p.at = now, round
	if now.MaxOpenConnections <= 0 {
		p.began, p.stuckAt = 0, time.Time{}
		return 0, 0, errUnlimited
	}
	if first {
		return 0, 0, errNoNews
	}
	waited, began := now.WaitDuration-last.WaitDuration, now.WaitCount-last.WaitCount
	if waited < 0 || began < 0 {
		p.began, p.stuckAt = 0, time.Time{}
		return 0, 0, errPoolFell
	}
	if dt > carriedFor {
		p.began, p.stuckAt = 0, time.Time{}
		return 0, 0, errTooLong
	}
	size := float64(now.MaxOpenConnections)
	full := now.InUse >= now.MaxOpenConnections
	if !full || waited > 0 {
		p.began, p.stuckAt = 0, time.Time{}
		return waited.Seconds() / dt.Seconds() / size, dt, nil
	}
	if p.began += began; p.began == 0 {
		return 0, dt, nil // all are in use, and nobody needs another
	}
	if p.stuckAt.IsZero() {
		p.stuckAt = round
	}
	value = float64(p.began) / size
	if round.Sub(p.stuckAt) >= stuckAfter {
		value = max(value, p.queued.High)
	}
	return value, dt, nil
}

var (
	errUnlimited = fmt.Errorf("%w: the pool has no limit, so nobody waits for a connection", errAbsent)
	errPoolFell  = &discard{reason: CounterFell, what: "a counter of the pool went back"}
	errTooLong   = &discard{reason: TooLong, what: "more than 5 s passed since the last sample"}
)
