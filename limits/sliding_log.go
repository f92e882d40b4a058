package limits

import (
	"fmt"
	"time"
)

// longestPast bounds how many single charges a rule may have to remember for one key: 16 MiB.
const longestPast = 1 << 20

// SlidingLog allows Quota.Amount in any span of Quota.Per, whatever its phase: it remembers when each charge was made, and
// each comes back exactly Quota.Per later.
//
//	used = the sum of what was charged in (now - Quota.Per, now]
//	fits if used + cost ≤ Quota.Amount, else retry when so much of the oldest has come back that it does
//
// It is the strictest of the windows, and the dearest: 16 to 32 bytes for each charge of a key that is within the window,
// charges in the same µs counted as one. There are never more than Quota.Amount of them, and NewPolicy refuses quotas
// above 1,048,576: for such use a SlidingWindow or a TokenBucket. All keys of a Memory together have a bound too, see
// MemoryConfig. A decision takes a binary search among them.
//
// All is exact, in whole units of cost and µs. A quota of 0 refuses everything; the zero value has no window and is refused
// by NewPolicy. A refund takes the charge out of the log.
type SlidingLog struct{ Quota Rate }

// String returns the rule as the configuration file spells it.
func (s SlidingLog) String() string { return fmt.Sprintf("sliding_log: {quota: %v}", s.Quota) }

func (s SlidingLog) compile() (arithmetic, error) {
	if err := checkQuota(s.Quota); err != nil {
		return nil, fmt.Errorf("sliding_log: %w", err)
	}
	if s.Quota.Amount > longestPast {
		return nil, fmt.Errorf("sliding_log: a quota of %d would take up to %d MB for each key; use a sliding_window, or lower it to %d", s.Quota.Amount, s.Quota.Amount>>20*16, longestPast)
	}
	return &logged{most: s.Quota.Amount, per: micro(s.Quota.Per)}, nil
}

// logged is the arithmetic of SlidingLog. Of its balance only last is used; the rest is in the past, whose times are in µs.
type logged struct {
	most int64
	per  int64 // µs
}

var _ recorder = (*logged)(nil)

// alive returns the oldest entry that still counts at a time, and the sum of all that do.
func (l *logged) alive(b balance, at int64) (oldest int, used int64) {
	oldest = b.past.from(at - l.per + 1)
	return oldest, b.past.since(oldest)
}

func (l *logged) judge(b balance, now, cost, before int64) (balance, judgement) {
	if cost > l.most-before {
		return b, judgement{reason: CostTooLarge}
	}
	at := max(now, b.last)
	oldest, used := l.alive(b, at)
	if over := used + before + cost - l.most; over > 0 {
		return b, judgement{reason: OverLimit, retryAfter: wait(now, b.past.covering(oldest, over).at+l.per)}
	}
	return balance{last: at, past: b.past}, judgement{}
}

func (l *logged) look(b balance, now int64) outlook { return l.lookAhead(b, 0, now) }

// lookAhead implements recorder.
func (l *logged) lookAhead(b balance, amount, now int64) outlook {
	at := max(now, b.last)
	oldest, used := l.alive(b, at)
	if used+amount == 0 {
		return outlook{remaining: l.most}
	}
	next, reset := b.last, b.last // the charge that is not recorded yet
	if used > 0 {
		next = b.past.entry(oldest).at
	}
	if amount == 0 {
		reset = b.past.entry(b.past.count - 1).at
	}
	return outlook{remaining: max(l.most-used-amount, 0), nextAfter: wait(now, next+l.per), resetAfter: wait(now, reset+l.per)}
}

// record implements recorder.
func (l *logged) record(b balance, amount int64) {
	oldest, _ := l.alive(b, b.last)
	b.past.forget(oldest)
	b.past.push(b.last, amount)
}

// refund implements arithmetic. After a change of the rule all that was used stands in one entry, at the time of the last
// charge: it is the first that is not before taken.
func (l *logged) refund(b balance, now, cost, taken int64) balance {
	at := max(now, b.last)
	i := b.past.from(taken)
	if taken <= at-l.per || i == b.past.len() {
		return b // time has given it back
	}
	oldest, _ := l.alive(b, at)
	b.past.reduce(i, cost)
	b.past.forget(oldest)
	b.last = at
	return b
}

func (l *logged) full(b balance, now int64) bool {
	_, used := l.alive(b, max(now, b.last))
	return used == 0
}

func (l *logged) used(b balance, now int64) (used, since int64) {
	oldest, used := l.alive(b, max(now, b.last))
	if used > 0 {
		since = b.past.entry(oldest).at
	}
	return used, since
}

func (l *logged) owing(used, now, _ int64) balance {
	return balance{last: now, past: only(now, min(used, l.most))}
}

func (l *logged) quota() int64          { return l.most }
func (l *logged) window() time.Duration { return time.Duration(l.per) * time.Microsecond }
func (l *logged) grain() time.Duration  { return time.Microsecond }
