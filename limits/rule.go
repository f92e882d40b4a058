package limits

import (
	"fmt"
	"time"
)

// Rule is what is allowed, as plain numbers: TokenBucket, LeakyBucket, or one of these inside a Delay. Rules are
// comparable values; NewPolicy gives one a name, checks it and compiles it. String returns it as the configuration file
// spells it.
//
// The interface is sealed, because a store has to know the arithmetic of every rule.
type Rule interface {
	fmt.Stringer

	// compile checks the rule and returns its arithmetic. Errors carry no prefix.
	compile() (arithmetic, error)
}

// arithmetic is a compiled rule: pure integer functions of a balance and of now, in µs since the Unix epoch. The balance
// comes and goes by value, so that asking costs no allocation and a refusal cannot have written anything.
type arithmetic interface {
	// judge says whether cost, which is above 0, fits into b on top of what earlier charges of the same Take add to it
	// (before), and what b is after all of them; if it does not fit, what it is without any of them. For OverLimit the
	// retryAfter is the time at which before and cost fit together.
	judge(b balance, now, cost, before int64) (balance, judgement)
	// look says where b stands; b may be what judge has just returned.
	look(b balance, now int64) outlook
	// refund undoes a charge of cost made at taken. What is in b.past is changed in place.
	refund(b balance, now, cost, taken int64) balance
	// full reports whether b carries no information any more: nothing is used at now.
	full(b balance, now int64) bool
	// used returns what is used of b at now, in whole units of cost, rounded up, and the earliest time whose charges may
	// be part of that.
	used(b balance, now int64) (used, since int64)
	// owing is the inverse of used, clamped to what the rule can owe: a balance at now of a spell that began at since.
	owing(used, now, since int64) balance

	quota() int64
	window() time.Duration
	// grain is the rule's unit of time.
	grain() time.Duration
}

// recorder is the arithmetic of a rule that has to remember single charges. A store keeps the past beside the balance.
type recorder interface {
	arithmetic
	// lookAhead is look for a balance to which judge has added an amount that is not recorded yet.
	lookAhead(b balance, amount, now int64) outlook
	// record enters the amount that judge has added to b into b.past, and forgets what is over. It is called once for
	// each Take that is allowed, when the balance is written.
	record(b balance, amount int64)
}

// heir is the arithmetic of a rule that can take over more from some rules than what is used.
type heir interface {
	// inherit returns b, counted by another rule, as a balance of this one, if it knows how.
	inherit(b balance, from arithmetic) (balance, bool)
}

// balance is what a store keeps for one policy and one key. The zero value is full: nothing used. No number in it is above
// Exact. Four words are as many as the compiler keeps in registers: a fifth makes each decision half as dear again.
type balance struct {
	owed  int64 // what is used and has not come back yet, in the rule's own units
	last  int64 // the balance's own time: the latest now it has seen, in µs
	since int64 // when it last stopped being full, in µs, and meaningless while it is full; windows say what it is for them

	past *past // of a recorder: single charges, nil when there are none
}

// judgement is the part of a Verdict that depends on the cost.
type judgement struct {
	reason            Reason
	retryAfter, delay time.Duration
	overSoft          bool
}

// outlook is the part of a Verdict that depends on the balance alone.
type outlook struct {
	remaining             int64
	nextAfter, resetAfter time.Duration
}
