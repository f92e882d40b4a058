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
	// judge says whether cost fits into b, and what b is afterwards. Before is what earlier charges of the same Take
	// have added to b. The new balance is also meaningful for OverLimit: later charges of the same Take are judged
	// on top of it, so that their RetryAfter is the time at which all of them fit.
	judge(b balance, now, cost, before int64) (balance, judgement)
	// look says where b stands.
	look(b balance, now int64) outlook
	// refund undoes a charge of cost made at taken.
	refund(b balance, now, cost, taken int64) balance
	// full reports whether b carries no information any more: nothing is used at now.
	full(b balance, now int64) bool
	// used returns what is used of b at now, in whole units of cost, rounded up.
	used(b balance, now int64) int64
	// owing is the inverse of used, clamped to what the rule can owe: a balance at now of a spell that began at since.
	owing(used, now, since int64) balance

	quota() int64
	window() time.Duration
}

// balance is what a store keeps for one policy and one key. The zero value is full: nothing used.
type balance struct {
	owed  int64 // what is used and has not come back yet, in the rule's own units
	last  int64 // the balance's own time: the latest now it has seen, in µs
	since int64 // when it last stopped being full, in µs; meaningless while it is full
}

// judgement is the part of a Verdict that depends on the cost.
type judgement struct {
	reason            Reason
	retryAfter, delay time.Duration
}

// outlook is the part of a Verdict that depends on the balance alone.
type outlook struct {
	remaining             int64
	nextAfter, resetAfter time.Duration
}
