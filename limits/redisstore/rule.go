package redisstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/spillway-go/spillway/limits"
)

// perRule is how many arguments a rule is told by.
const perRule = 7

// rule is a policy's rule as the scripts are told it.
type rule struct {
	args   [perRule]any
	debt   bool   // batches know it
	queue  bool   // who is granted gets a place in a queue
	packed string // as they are told it
	fault  error
}

// tag returns what begins its values.
func (r *rule) tag() string { return r.args[0].(string) }

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
	tell := func(letter byte, first, second int64, numbers ...int64) {
		r.args[0] = tagOf(letter, first, second, n.Run, p.Rule())
		for i, x := range numbers {
			r.args[1+i] = strconv.FormatInt(x, 10)
		}
	}
	switch n.Arithmetic {
	case limits.CountsDebt:
		m := n.Meter
		r.debt, r.queue = true, m.Queue
		tell(letter('m', 'M', n.Tick), m.Drain, m.Unit, m.Drain, m.Unit, m.Bound, n.Tick, n.MostOwed, m.Capacity)
		if !m.Queue {
			r.args[5] = ""
		}
		r.packed = pack(r.tag(), &m, n.Tick)
	case limits.CountsWindow:
		tell('w', 0, n.Period, n.Quota, n.Period)
	case limits.CountsWeighted:
		tell(letter('v', 'V', n.Tick), 0, n.Period, n.Quota, n.Period)
	case limits.CountsLog:
		tell('l', 0, n.Period, n.Quota, n.Period)
	case limits.CountsBurst:
		tell('b', n.Soft, n.Period, n.Quota, n.Soft, n.Period)
	case limits.CountsTotal:
		tell('t', n.Soft, n.Period, n.Quota, n.Soft, n.Period, n.Total, n.Run)
	default:
		r.fault = errInProcess
	}
	return r
}

// pack tells a debt to the script of batches.
func pack(tag string, m *limits.Meter, tick int64) string {
	b := append([]byte{byte(len(tag))}, tag...)
	for _, n := range []int64{m.Drain, m.Unit, m.Bound, tick, m.Capacity} {
		b = appendLong(b, n)
	}
	if m.Queue {
		return string(append(b, 1))
	}
	return string(append(b, 0))
}

func letter(µs, ms byte, tick int64) byte {
	if tick == 1 {
		return µs
	}
	return ms
}

// tagOf returns what begins the values of a rule: the letter of its arithmetic, the numbers without which its balances cannot
// be read when it has changed, and two bytes that mark it. Should two of one policy's rules ever have the same numbers and the
// same mark, then what was used is taken over without rounding it up, and nothing else happens.
func tagOf(letter byte, first, second, run int64, r limits.Rule) string {
	a, b := short(first), short(second)
	tag := append([]byte{letter, byte(8*len(a) + len(b))}, a...)
	tag = append(tag, b...)
	if run > 0 {
		tag = append(tag, long(run)...)
	}
	digest := sha256.Sum256([]byte(r.String()))
	return string(append(tag, digest[:2]...))
}

// long returns a number of at most 53 bits in 7 bytes, most significant first, and short in as many as it needs.
func long(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n))[1:] }

func short(n int64) []byte { return bytes.TrimLeft(long(n), "\x00") }
