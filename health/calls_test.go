package health

import (
	"database/sql"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pressureOf fails unless the named route has this pressure.
func pressureOf(t *testing.T, s *Sampler, route string, want float64, why string) {
	t.Helper()
	if p, state := s.PressureOf(route); !state.Known() || !near(p, want, 0.01) {
		t.Errorf("%s: route %s has pressure %v (%v), want %v; %+v", why, route, p, state, want, s.Status())
	}
}

// fakeDB is a pool in which callers want a connection at a rate and hold it for a time. While it is stuck nobody returns one.
type fakeDB struct {
	mu sync.Mutex
	sql.DBStats
}

func (db *fakeDB) change(f func(*sql.DBStats)) {
	db.mu.Lock()
	defer db.mu.Unlock()
	f(&db.DBStats)
}

func (db *fakeDB) stats() sql.DBStats {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.DBStats
}

// watchPool starts a Sampler with a pool of ten that routes a and b need, on a process that is idle.
func watchPool(t *testing.T, db *fakeDB) *Sampler {
	return watch(t, newService(2, 0, time.Now), Config{Pools: []Pool{{Name: "db", Stats: db.stats, Routes: []string{"a", "b"}}}})
}

func TestAPoolIsPressedByTheCallersItKeepsWaiting(t *testing.T) {
	for _, tc := range []struct {
		why  string
		step sql.DBStats // every 250 ms
		used int
		want float64
	}{
		{"nobody waits", sql.DBStats{}, 5, 0},
		{"all are in use and nobody needs another", sql.DBStats{}, 10, 0},
		{"many short waits are no queue", sql.DBStats{WaitCount: 100, WaitDuration: 100 * time.Millisecond}, 10, 0},
		{"five on average", sql.DBStats{WaitCount: 3, WaitDuration: 5 * interval}, 10, 0},
		{"twelve and a half on average", sql.DBStats{WaitCount: 3, WaitDuration: 25 * interval / 2}, 10, 0.5},
		{"twenty on average", sql.DBStats{WaitCount: 3, WaitDuration: 20 * interval}, 9, 1},
		{"a hundred", sql.DBStats{WaitCount: 3, WaitDuration: 100 * interval}, 10, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			db := &fakeDB{DBStats: sql.DBStats{MaxOpenConnections: 10, InUse: tc.used}}
			s := watchPool(t, db)
			for range 80 {
				pass(interval)
				db.change(func(st *sql.DBStats) {
					st.WaitCount += tc.step.WaitCount
					st.WaitDuration += tc.step.WaitDuration
				})
			}
			pass(interval / 2)
			pressureOf(t, s, "a", tc.want, tc.why)
			pressureOf(t, s, "b", tc.want, tc.why)
			pressed(t, s, 0, tc.why+": the process")
			if p, state := s.PressureOf("c"); p != 0 || state != Absent {
				t.Errorf("%s: route c has pressure %v, %v", tc.why, p, state)
			}
		})
	}
}

func TestAStuckPoolIsFullPressureHoweverFewWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{DBStats: sql.DBStats{MaxOpenConnections: 10, InUse: 10}}
		s := watchPool(t, db)
		pass(10 * time.Second)
		pressureOf(t, s, "a", 0, "all in use, nobody waits")
		db.change(func(st *sql.DBStats) { st.WaitCount++ }) // and that wait never ends
		pass(time.Second)
		pressureOf(t, s, "a", 0, "one waits, for a second")
		pass(5 * time.Second)
		pressureOf(t, s, "a", 1, "and for six")
		pass(time.Hour)
		pressureOf(t, s, "a", 1, "while it lasts")
		db.change(func(st *sql.DBStats) { st.WaitDuration += time.Hour }) // the wait ends
		pass(10 * time.Second)
		pressureOf(t, s, "a", 0, "after it")
	})
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{DBStats: sql.DBStats{MaxOpenConnections: 10, InUse: 10}}
		s := watchPool(t, db)
		pass(10*time.Second + interval/2)
		for range 8 {
			db.change(func(st *sql.DBStats) { st.WaitCount += 25 })
			pass(interval)
		}
		pressureOf(t, s, "a", 1, "a hundred a second come and none is served, for 2 s")
		db.change(func(st *sql.DBStats) { st.InUse = 3 })
		pass(10 * time.Second)
		pressureOf(t, s, "a", 0, "connections are free")
	})
}

func TestAPoolThatCanNotBeRatedHasNoOpinion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &fakeDB{DBStats: sql.DBStats{InUse: 1000, WaitCount: 5, WaitDuration: time.Hour}}
		s := watchPool(t, db)
		pass(10 * time.Second)
		if r := signalNamed(t, s, "db"); r.State != Absent || r.Error == "" {
			t.Errorf("an unlimited pool reads %+v", r)
		}
		db.change(func(st *sql.DBStats) { st.MaxOpenConnections = 10 })
		pass(10 * time.Second)
		db.change(func(st *sql.DBStats) { st.WaitDuration = 0 }) // another pool
		pass(interval)
		if r := signalNamed(t, s, "db"); r.Discarded[CounterFell] != 1 || r.State != OK {
			t.Errorf("after a counter fell it reads %+v", r)
		}
	})
	broken := &pool{stats: func() sql.DBStats { panic("closed") }}
	if _, _, err := broken.measure(noon); err == nil || errors.Is(err, errAbsent) {
		t.Errorf("Stats that panics: %v", err)
	}
	p := &pool{stats: func() sql.DBStats { return sql.DBStats{MaxOpenConnections: 1} }}
	p.measure(noon)
	if _, _, err := p.measure(noon); !errors.Is(err, errClockStood) {
		t.Errorf("at the same moment: %v", err)
	}
	if _, _, err := p.measure(noon.Add(time.Minute)); !errors.Is(err, errTooLong) {
		t.Errorf("a minute later: %v", err)
	}
}

func TestADependencyIsPressedByTheShareOfItsCallsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls Calls
		s := watch(t, newService(2, 0, time.Now), Config{Dependencies: []Dependency{
			{Name: "payments", Calls: &calls, Failed: Thresholds{0.2, 0.6}, Routes: []string{"checkout"}}}})
		// call makes n calls in each quarter of the next seconds, failed of them in vain.
		call := func(seconds, n, failed int) {
			for range 4 * seconds {
				for i := range n {
					calls.Done(i < failed)
				}
				pass(interval)
			}
		}
		pass(interval / 2)
		call(4, 1, 1)
		if r := signalNamed(t, s, "payments"); r.State != Absent {
			t.Errorf("16 failed calls are too few to tell; it reads %+v", r)
		}
		call(20, 10, 1)
		pressureOf(t, s, "checkout", 0, "a tenth fails")
		call(20, 10, 4)
		pressureOf(t, s, "checkout", 0.5, "four tenths fail")
		call(5, 10, 10)
		pressureOf(t, s, "checkout", 1, "for half of the window all fail")
		if p, state := s.PressureOf("search"); p != 0 || state != Absent {
			t.Errorf("route search has pressure %v, %v", p, state)
		}
		pressed(t, s, 0, "the process")
		pass(callsWindow)
		if p, state := s.PressureOf("checkout"); p != 0 || state != Absent {
			t.Errorf("without calls: pressure %v, %v", p, state)
		}
	})
}

func TestNobodySeesMoreFailuresThanCalls(t *testing.T) {
	split := new(Calls)
	split.all.Store(5) // one of them failed, and that is not counted yet
	split.failed.Store(4)
	g := newFailures(Dependency{Calls: split})
	g.measure(noon)
	split.all.Store(25)
	split.failed.Store(25)
	if v, _, err := g.measure(noon.Add(interval)); err != nil || v != 1 {
		t.Errorf("of a call that is counted in two parts: %v, %v", v, err)
	}

	var calls Calls
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 20_000 {
				calls.Done(true)
			}
		})
	}
	f := newFailures(Dependency{Name: "x", Calls: &calls})
	now := noon
	for range 1000 {
		now = now.Add(interval)
		if v, _, err := f.measure(now); err == nil && v > 1 {
			t.Errorf("%v of the calls failed", v)
		}
	}
	writers.Wait()
	if all, failed := calls.all.Load(), calls.failed.Load(); all != 80_000 || failed != 80_000 {
		t.Errorf("%d of %d calls failed, want 80000 of 80000", failed, all)
	}
	if n := testing.AllocsPerRun(100, func() { calls.Done(true) }); n != 0 {
		t.Errorf("%v allocations for each call", n)
	}
}
