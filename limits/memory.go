package limits

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxKeys is the MaxKeys of a MemoryConfig that names none: at 40 bytes for a balance and a table that is 64 to 80 %
// full, at most 66 MB.
const DefaultMaxKeys = 1 << 20

// MemoryConfig configures a Memory. The zero value is good for a million keys.
type MemoryConfig struct {
	// MaxKeys bounds how many balances are kept, one for each policy and key that is not full; 0 means DefaultMaxKeys.
	// The bound is split evenly between independent parts of the table, so that a few percent may be out of reach.
	// Memory is used only as keys come, 50 to 64 bytes for each, and given back as they go.
	//
	// SlidingLog, and Burst with a Total, remember times besides: about 110 bytes more for each key, and entries of 16 bytes.
	// Of those all keys together have eight for each of MaxKeys, or 2,097,152 if that is more; once they are used up a key
	// still gets four. A log that finds no room for another entry joins each two that follow one another, at the later
	// time of both: quota comes back later than it would, never too early, and what a verdict promises stays true. So a
	// million keys of such rules take about 370 MB at most.
	MaxKeys int
}

// Memory keeps balances in this process. It has no goroutine and no timer, needs no Close, and takes no allocation for a
// Take of up to four charges.
//
// Its memory is bounded, and the bound cannot be used to wash out a limited key: a balance is dropped only when it is full
// again, for then it carries no information. Takes that are admitted look at a few others of their part of the table and
// drop those, so there is no sweep that stops traffic. While there is no room newcomers share one balance for each policy (in
// their part of the table, see MaxKeys), and keys that have their own keep it. A newcomer that finds room again starts where
// the shared balance stands. Stats counts how often that happens.
//
// Time comes from the caller's now, or from the monotonic clock if that is the zero Time, which is cheaper. If now has a
// monotonic reading, as time.Now gives, steps of the wall clock change nothing. One Take cannot hold two policies of one name
// with different rules. Keys are kept as a 128-bit hash under a secret seed, so that clients cannot choose keys that meet.
//
// Take and Peek give up when the context is already done. Refund does not look at it: the reason to refund is often that
// the caller has gone.
type Memory struct {
	anchor time.Time // when the store was made; has a monotonic reading
	begin  int64     // the same in ns since the Unix epoch; not negative
	seeds  [2]maphash.Seed
	shift  uint // a key's shard is the top bits of its hash
	shards []shard

	entries int64         // how many entries all logs together may have
	room    *atomic.Int64 // how many of them are left; elsewhere, for it changes often and what is around it never

	editions atomic.Pointer[[]*edition] // all editions by index; replaced whole, never written to

	mu     sync.Mutex // guards what follows, and writing to editions
	known  map[editionKey]*edition
	spaces map[string]uint32 // policy name → key space
}

var _ Store = (*Memory)(nil)

// errNoMemory is what a zero Memory answers. What is decided quickly needs no look: its policies were used with it before.
var errNoMemory = errors.New("limits: the Memory is empty; build it with NewMemory")

// NewMemory returns an empty store. It refuses a negative MaxKeys.
func NewMemory(config MemoryConfig) (*Memory, error) {
	if config.MaxKeys < 0 {
		return nil, fmt.Errorf("limits: MemoryConfig.MaxKeys %d is negative; use 0 for %d, or more", config.MaxKeys, DefaultMaxKeys)
	}
	if config.MaxKeys == 0 {
		config.MaxKeys = DefaultMaxKeys
	}
	n := shardsFor(config.MaxKeys)
	anchor := time.Now()
	m := &Memory{
		anchor: anchor,
		begin:  max(anchor.UnixNano(), 0),
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		shift:  uint(64 - bits.TrailingZeros(uint(n))),
		shards: make([]shard, n),
		known:  make(map[editionKey]*edition),
		spaces: make(map[string]uint32),
	}
	m.entries = max(int64(config.MaxKeys)*entriesPerKey, leastEntries)
	m.room = new(atomic.Int64)
	m.room.Store(m.entries)
	m.editions.Store(&[]*edition{nil}) // index 0 marks an empty slot
	for i := range m.shards {
		m.shards[i].max = config.MaxKeys / n
	}
	return m, nil
}

// shardsFor returns how many parts a table of maxKeys is split into, a power of two: up to 64 for less waiting on locks,
// more where a part would have more than 4096 keys, whose growing would take long.
func shardsFor(maxKeys int) int {
	n := max(maxKeys/4096, min(maxKeys/256, 64), 1)
	return 1 << (bits.Len(uint(n)) - 1)
}

// Take implements Store. It is short enough for the compiler to put it into its callers, which spares a Decision one of its
// two copies.
func (m *Memory) Take(ctx context.Context, now time.Time, charges []Charge) (d Decision, err error) {
	err = m.take(ctx, now, charges, &d)
	return d, err
}

// Peek implements Store.
func (m *Memory) Peek(ctx context.Context, now time.Time, charges []Charge) (d Decision, err error) {
	err = m.decide(ctx, now, charges, false, &d)
	return d, err
}

// take fills in d, which is empty.
func (m *Memory) take(ctx context.Context, now time.Time, charges []Charge, d *Decision) error {
	if n := len(charges); ctx.Err() == nil &&
		(n == 1 && m.takeOne(now, &charges[0], d) || n > 1 && n <= inline && m.takeFew(now, charges, d)) {
		return nil
	}
	return m.decide(ctx, now, charges, true, d)
}

// decide fills in d, which is empty, for any charges. It gives up if the context is done.
func (m *Memory) decide(ctx context.Context, now time.Time, charges []Charge, take bool, d *Decision) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("limits: nothing taken: %w", err)
	}
	if m.shards == nil {
		return errNoMemory
	}
	var few [inline]probe
	probes := few[:min(len(charges), inline)]
	if len(charges) > inline {
		probes = make([]probe, len(charges))
	}
	if err := m.aim(probes, charges); err != nil {
		return err
	}
	t := m.micros(now)
	m.lock(probes)
	m.findLocked(probes, t, take)
	d.Allowed = judge(probes, charges, t, take, d)
	if take && d.Allowed {
		m.writeLocked(probes)
		restate(probes, t, d)
	}
	if take {
		m.tidyLocked(probes, t)
	}
	m.unlock(probes)
	return nil
}

// judge fills d with the verdicts and returns whether all charges fit. What the balances will be is left in the probes.
func judge(probes []probe, charges []Charge, now int64, take bool, d *Decision) bool {
	allowed := true
	for i := range charges {
		p, c := &probes[i], &charges[i]
		first := &probes[p.first]
		var j judgement
		if c.Cost > 0 {
			var after balance
			after, j = p.edition.math.judge(first.found, now, c.Cost, first.taken)
			if j.reason == Allowed || j.reason != CostTooLarge && !c.Shadow {
				first.balance = after
				first.taken += c.Cost // also of a refusal: what comes after it on this balance comes on top of it
			}
		}
		allowed = allowed && (j.reason == Allowed || c.Shadow)
		d.Append(Verdict{Policy: c.Policy, Key: c.Key, Cost: c.Cost, RetryAfter: j.retryAfter, Delay: j.delay, Taken: NotTaken,
			Reason: j.reason, Shadow: c.Shadow, OverSoft: j.overSoft, shared: first.shared})
	}
	for i := range probes {
		p, v := &probes[i], d.At(i)
		first := &probes[p.first]
		b := first.found
		if allowed {
			b = first.balance
		} else {
			v.Delay, v.OverSoft = 0, false
		}
		if allowed && take && v.Cost > 0 && v.Reason == Allowed {
			v.Taken = b.last
		}
		if r := p.edition.recorder; allowed && r != nil {
			v.stands(r.lookAhead(b, first.taken, now))
		} else {
			v.stands(p.edition.math.look(b, now))
		}
	}
	return allowed
}

// restate says anew where those balances stand whose log had no room for the charge as it was, after it was written.
func restate(probes []probe, now int64, d *Decision) {
	for i := range probes {
		p := &probes[i]
		if b := probes[p.first].balance; b.past != nil && b.past.joined {
			d.At(i).stands(p.edition.math.look(b, now))
		}
	}
}

// Refund implements Store.
func (m *Memory) Refund(_ context.Context, now time.Time, d Decision) error {
	if !d.Allowed {
		return nil
	}
	if m.shards == nil {
		return errNoMemory
	}
	t := m.micros(now)
	for i := range d.Len() {
		v := d.At(i)
		if v.Taken == NotTaken || v.Cost == 0 {
			continue
		}
		if err := (&Charge{Policy: v.Policy, Key: v.Key, Cost: v.Cost}).check(); err != nil {
			return fmt.Errorf("limits: verdict %d: %w", i, err)
		}
		e, h := m.edition(v.Policy), m.digest(v.Key)
		h.lo ^= e.mark
		s := m.shardOf(h)
		s.mu.Lock()
		s.refundLocked(e.space, h, v, t, *m.editions.Load())
		s.mu.Unlock()
	}
	return nil
}

func (c *Charge) check() error {
	if c.Policy == nil {
		return fmt.Errorf("there is no policy; build one with NewPolicy")
	}
	if c.Policy.math == nil {
		return fmt.Errorf("the policy is empty; build it with NewPolicy")
	}
	if c.Cost < 0 {
		return fmt.Errorf("the cost %d for policy %q is negative; give quota back with Refund", c.Cost, c.Policy.name)
	}
	return nil
}

// micros returns now in whole µs since the Unix epoch, floored. It is counted from the anchor, so that two times with a
// monotonic reading are as far apart as they really were.
func (m *Memory) micros(now time.Time) int64 {
	if now.IsZero() { // time.Since reads one clock, where time.Now reads two
		return int64(min(uint64(m.begin+int64(time.Since(m.anchor)))/1000, latest))
	}
	since := int64(now.Sub(m.anchor))
	if m.begin > math.MaxInt64-max(since, 0) {
		return latest
	}
	return min(max(m.begin+since, 0)/1000, latest)
}

// latest is the last time there is, in µs, so that times have no more than 53 bits: it is in the year 2255.
const latest = 9_000_000_000_000_000

// A Stats says how a Memory is doing. Counters count from its construction.
type Stats struct {
	// Keys is how many balances there are now, and MaxKeys how many there can be.
	Keys    int `json:"keys"`
	MaxKeys int `json:"max_keys"`
	// Dropped counts balances that were dropped because they were full again.
	Dropped uint64 `json:"dropped"`
	// Overflowed counts charges that were judged by a shared balance because there was no room for their own.
	Overflowed uint64 `json:"overflowed"`
	// Entries is how many single charges the rules that remember them have room for now, 16 bytes each, and MaxEntries how
	// many before they remember less exactly; see MemoryConfig.
	Entries    int `json:"entries"`
	MaxEntries int `json:"max_entries"`
}

// Stats returns the counters. It visits the parts of the table one after the other and stops none for long.
func (m *Memory) Stats() Stats {
	var sum Stats
	if m.shards == nil {
		return sum
	}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		sum.Keys += s.count
		sum.MaxKeys += s.max
		sum.Dropped += s.dropped
		sum.Overflowed += s.overflowed
		s.mu.Unlock()
	}
	sum.MaxEntries = int(m.entries)
	sum.Entries = int(m.entries - m.room.Load())
	return sum
}
