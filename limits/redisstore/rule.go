package redisstore

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/spillway-go/spillway/limits"
)

// perRule is how many arguments a rule is told by.
const perRule = 7

// rule is a policy's rule as the scripts are told it.
type rule struct {
	args  [perRule]any
	debt  bool // the script for debts knows it
	fault error
}

// ruleOf returns the rule of a policy. Policies come anew with each reload; what is remembered of them is bounded.
func (s *Store) ruleOf(p *limits.Policy) *rule {
	if r, ok := s.rules.Load(p); ok {
		return r.(*rule)
	}
	if s.ruleCount.Add(1) > 4096 {
		s.rules.Clear()
		s.ruleCount.Store(1)
	}
	r := compile(p)
	s.rules.Store(p, r)
	return r
}

// compile tells a rule: its tag and six numbers, which the letter of the tag gives a meaning.
func compile(p *limits.Policy) *rule {
	n := p.Numbers()
	r := new(rule)
	for i := range r.args {
		r.args[i] = ""
	}
	mark := mark(p.Rule())
	tell := func(letter string, read []int64, numbers ...int64) {
		tag := letter
		for _, x := range read {
			tag += strconv.FormatInt(x, 36) + "."
		}
		r.args[0] = tag + mark
		for i, x := range numbers {
			r.args[1+i] = strconv.FormatInt(x, 10)
		}
	}
	switch n.Arithmetic {
	case limits.CountsDebt:
		m := n.Meter
		r.debt = true
		tell(letter("m", "M", n.Tick), []int64{m.Drain, m.Unit}, m.Drain, m.Unit, m.Bound, n.Tick, n.MostOwed, m.Capacity)
		if !m.Queue {
			r.args[5] = ""
		}
	case limits.CountsWindow:
		tell("w", []int64{n.Period}, n.Quota, n.Period)
	case limits.CountsWeighted:
		tell(letter("v", "V", n.Tick), []int64{n.Period}, n.Quota, n.Period)
	case limits.CountsLog:
		tell("l", []int64{n.Period}, n.Quota, n.Period)
	case limits.CountsBurst:
		tell("b", []int64{n.Soft, n.Period}, n.Quota, n.Soft, n.Period)
	case limits.CountsTotal:
		tell("t", []int64{n.Soft, n.Period, n.Run}, n.Quota, n.Soft, n.Period, n.Total, n.Run)
	default:
		r.fault = errInProcess
	}
	return r
}

func letter(µs, ms string, tick int64) string {
	if tick == 1 {
		return µs
	}
	return ms
}

// mark tells rules apart whose balances read alike. Should two of one policy's rules ever have the same, what was used is
// taken over without rounding it up, and nothing else happens.
func mark(r limits.Rule) string {
	digest := sha256.Sum256([]byte(r.String()))
	text := strconv.FormatUint(uint64(binary.BigEndian.Uint32(digest[:]))%(36*36*36), 36)
	return "000"[len(text):] + text
}
