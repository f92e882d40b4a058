package redisstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/limits"
)

// FuzzValue puts anything at our keys: as it is, behind the mark of the rule that is asked about, and behind that of another
// rule. It is a balance or an error that says what to do; nothing panics, and what is refused as not ours stays as it is.
func FuzzValue(f *testing.F) {
	full := bytes.Repeat([]byte{0xff}, 7)
	for kind := range everyKind {
		for mark := range len(everyKind) + 1 {
			for _, value := range [][]byte{nil, {0}, bytes.Repeat([]byte{0}, 14), append(full, full...), bytes.Repeat(full, 3),
				bytes.Repeat(full, 4), bytes.Repeat([]byte{1, 0}, 21), bytes.Repeat([]byte{0, 6, 30}, 28)} {
				f.Add(uint8(kind), uint8(mark), value, uint16(1))
			}
		}
		f.Add(uint8(kind), uint8(255), []byte("somebody else's text"), uint16(0))
		f.Add(uint8(kind), uint8(255), []byte("b\x09\x00\x00xx01234567890123"), uint16(3)) // a burst of nothing in no time
		f.Add(uint8(kind), uint8(255), []byte("m\x09\x00\x00xx\x00\x06\x3012\x00\x00\x00\x00\x00\x00\x00\x0012"), uint16(3))
		f.Add(uint8(kind), uint8(255), []byte("v\x01\x00xx\x00\x06\x3012\x00\x00\x00\x00\x00\x00\x00\x0012"), uint16(3))
	}
	client := redistest.Shared(f)
	s := open(f, client, Config{})
	var policies []*limits.Policy
	for _, r := range everyKind {
		p, err := limits.NewPolicy("fuzz", r)
		if err != nil {
			f.Fatal(err)
		}
		policies = append(policies, p)
	}
	f.Fuzz(func(t *testing.T, kind, mark uint8, value []byte, cost uint16) {
		p := policies[int(kind)%len(policies)]
		if int(mark) < len(policies) {
			value = append([]byte(compile(policies[mark]).args[0].(string)), value...)
		}
		key := s.key(p.Name(), "k")
		client.Set(ctx, key, value, 0)
		charges := one(p, "k", int64(cost))
		_, err := s.Peek(ctx, time.Time{}, charges)
		typed(t, "peek", err)
		if got, _ := client.Get(ctx, key).Bytes(); !bytes.Equal(got, value) {
			t.Errorf("who only looked made %q of %q", got, value)
		}
		d, err := s.Take(ctx, time.Time{}, charges)
		typed(t, "take", err)
		got, _ := client.Get(ctx, key).Bytes()
		if kind, _ := KindOf(err); (err != nil && kind == Misconfigured || err == nil && !d.Allowed) && !bytes.Equal(got, value) {
			t.Errorf("%+v, %v made %q of %q", d, err, got, value)
		}
		if err != nil {
			return
		}
		if v := d.At(0); d.Allowed && int64(cost) > p.Quota() || v.Remaining < 0 || v.RetryAfter < 0 {
			t.Errorf("the decision is %+v", *v)
		}
		typed(t, "refund", s.Refund(ctx, time.Time{}, d))
	})
}

// typed fails unless err is nil or one that a store returns.
func typed(t *testing.T, op string, err error) {
	t.Helper()
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Op != op || e.Kind == Cancelled || e.Kind == Malformed) {
		t.Errorf("%s: %v", op, err)
	}
}

// FuzzAnswer reads anything as the answer of a script, as a proxy or a server of another kind might give it: numbers, and now
// and then something that is none.
func FuzzAnswer(f *testing.F) {
	words := func(numbers ...int64) []byte {
		var b []byte
		for _, n := range numbers {
			b = binary.BigEndian.AppendUint64(b, uint64(n))
		}
		return b
	}
	for kind := range everyKind {
		for _, answer := range [][]byte{nil, words(-1), words(-2), words(-2, 1), words(-2, 9), words(1, 1), words(1e15, 1, 0, 0, 0, 0),
			words(1e15, 0, 10, 1e15, 1e15, 0), words(1e15, 1, 0, 0, 0, 2, 9e14, 3, 8e14, 1<<62), words(1e15, 1, 0, 0, 0, 1<<62),
			words(1e15, 1, -1, -1, -1, 0), words(-5, 1, 1<<62, 1<<62, 1<<62, 0)} {
			f.Add(uint8(kind), answer, uint8(0), uint16(1))
			f.Add(uint8(kind), answer, uint8(3), uint16(100))
		}
	}
	var policies []*limits.Policy
	for _, r := range everyKind {
		p, err := limits.NewPolicy("fuzz", r)
		if err != nil {
			f.Fatal(err)
		}
		policies = append(policies, p)
	}
	s := &Store{prefix: DefaultPrefix}
	f.Fuzz(func(t *testing.T, kind uint8, answer []byte, odd uint8, cost uint16) {
		p := policies[int(kind)%len(policies)]
		q, err := s.ask(time.Time{}, one(p, "k", int64(cost)))
		if err != nil {
			t.Fatal(err)
		}
		var reply []any
		for i := 0; i+8 <= len(answer); i += 8 {
			reply = append(reply, int64(binary.BigEndian.Uint64(answer[i:])))
		}
		if odd > 0 && int(odd) <= len(reply) {
			reply[odd-1] = []any{nil, "17", 1.5, []any{int64(1)}}[int(odd)%4]
		}
		c := query{rows: []*question{q}, take: true}
		if err := c.read(s, reply); err == nil && q.d.Allowed && int64(cost) > p.Quota() {
			t.Errorf("%v means that a cost of %d is allowed of %d", reply, cost, p.Quota())
		}
	})
}
