package redisstore

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// SubBuckets keeps the balances of policies with limits.InSubBuckets in several parts, which live on different servers of a
// cluster: for one quota that more ask about than one server can answer. It wraps a store, usually all other wrappers.
//
// A decision is about one part, chosen at random, and if that refuses about another: two calls at most, and nothing is taken but
// by an admission. So together the parts admit no more than the policy: over any span that begins with full balances, capacity +
// rate × span. The price is that who asks may be refused while there is something left in the other parts: of n, up to
// (n - 2)/n of what there is. Parts are used evenly, for who finds one empty goes to another; where so much is wanted that every
// part is asked for more than its rate, all of the rate is admitted.
//
// Verdicts are those of the part, for the policy: Remaining is that of the part times n, an estimate, and RetryAfter is the time
// after which every part admits the charge, whichever is asked. A cost above the smallest part's capacity is refused as too large
// wherever it does not fit. The key of a verdict names the part, as KEY/3, and charges of such a key go to that part.
type SubBuckets struct {
	inner limits.Store
	again atomic.Int64
	pick  func(n int) int
}

var (
	_ limits.Store    = (*SubBuckets)(nil)
	_ limits.Reporter = (*SubBuckets)(nil)
	_ io.Closer       = (*SubBuckets)(nil)
)

// NewSubBuckets wraps a store. The SubBuckets closes it.
func NewSubBuckets(inner limits.Store) (*SubBuckets, error) {
	if inner == nil {
		return nil, errors.New("redisstore: there is no store to keep parts in; make one with NewGuard")
	}
	return &SubBuckets{inner: inner, pick: rand.IntN}, nil
}

// Take implements limits.Store.
func (s *SubBuckets) Take(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return s.decide(ctx, now, charges, s.inner.Take)
}

// Peek implements limits.Store.
func (s *SubBuckets) Peek(ctx context.Context, now time.Time, charges []limits.Charge) (limits.Decision, error) {
	return s.decide(ctx, now, charges, s.inner.Peek)
}

func (s *SubBuckets) decide(ctx context.Context, now time.Time, charges []limits.Charge, ask func(context.Context, time.Time, []limits.Charge) (limits.Decision, error)) (limits.Decision, error) {
	split := false
	for i := range charges {
		split = split || charges[i].Policy != nil && charges[i].Policy.SubBuckets() != nil
	}
	if !split {
		return ask(ctx, now, charges)
	}
	var few [inline]limits.Charge
	parts := append(few[:0], charges...)
	for i := range parts {
		s.choose(parts, charges, i, -1)
	}
	d, err := ask(ctx, now, parts)
	if err != nil {
		return d, s.whole(err, charges)
	}
	waits := make([]time.Duration, 0, inline)
	if !d.Allowed {
		again := false
		for i := range parts {
			waits = append(waits, d.At(i).RetryAfter)
			if p := charges[i].Policy; p.SubBuckets() != nil && charges[i].Key == base(p, charges[i].Key) && d.At(i).Reason != limits.Allowed {
				_, was := partOf(p, parts[i].Key)
				s.choose(parts, charges, i, was)
				again = true
			}
		}
		if again {
			s.again.Add(1)
			if d, err = ask(ctx, now, parts); err != nil {
				return d, s.whole(err, charges)
			}
		}
	}
	for i := range parts {
		v, p := d.At(i), charges[i].Policy
		if p.SubBuckets() == nil {
			continue
		}
		n := int64(len(p.SubBuckets()))
		if v.Reason == limits.OverLimit {
			if v.RetryAfter = max(v.RetryAfter, surely(p, v.Cost)); len(waits) > i {
				v.RetryAfter = max(v.RetryAfter, waits[i])
			}
		}
		v.Policy, v.Remaining = p, min(v.Remaining*n, p.Quota())
	}
	return d, nil
}

// surely is how long any part takes at most until a cost fits, whatever it owes.
func surely(p *limits.Policy, cost int64) time.Duration {
	parts := p.SubBuckets()
	m, drains := parts[len(parts)-1].Meter() // none has a lower rate
	if !drains {
		return 0 // windows end at the same time
	}
	return time.Duration(ceil(cost*m.Unit, m.Drain)) * m.Tick
}

// choose makes the i-th of parts that of another sub-bucket than not. Charges of one balance go to the same.
func (s *SubBuckets) choose(parts, charges []limits.Charge, i, not int) {
	c := &charges[i]
	if c.Policy == nil || c.Policy.SubBuckets() == nil {
		return
	}
	for j := range i {
		if charges[j].Policy == c.Policy && charges[j].Key == c.Key {
			parts[i].Policy, parts[i].Key = parts[j].Policy, parts[j].Key
			return
		}
	}
	all := c.Policy.SubBuckets()
	at, key := -1, c.Key
	if _, named := partOf(c.Policy, c.Key); named >= 0 {
		at = named
	} else {
		if not < 0 {
			at = s.pick(len(all))
		} else if at = s.pick(len(all) - 1); at >= not {
			at++
		}
		key += "/" + strconv.Itoa(at)
	}
	parts[i].Policy, parts[i].Key = all[at], key
}

// partOf returns the part that a key names, or nil and -1.
func partOf(p *limits.Policy, key string) (*limits.Policy, int) {
	_, after, found := strings.Cut(key[max(strings.LastIndexByte(key, '/'), 0):], "/")
	n, err := strconv.Atoi(after)
	if !found || err != nil || n < 0 || n >= len(p.SubBuckets()) {
		return nil, -1
	}
	return p.SubBuckets()[n], n
}

// base is a key without the part that it names.
func base(p *limits.Policy, key string) string {
	if _, n := partOf(p, key); n >= 0 {
		return key[:strings.LastIndexByte(key, '/')]
	}
	return key
}

// whole makes an error that names a part name its policy.
func (s *SubBuckets) whole(err error, charges []limits.Charge) error {
	var u *limits.UnavailableError
	if errors.As(err, &u) {
		for i := range charges {
			if p := charges[i].Policy; p != nil {
				for _, part := range p.SubBuckets() {
					if part == u.Policy {
						return &limits.UnavailableError{Policy: p, Err: u.Err}
					}
				}
			}
		}
	}
	return err
}

// Refund implements limits.Store.
func (s *SubBuckets) Refund(ctx context.Context, now time.Time, d limits.Decision) error {
	back := limits.Decision{Allowed: d.Allowed, Source: d.Source}
	for i := range d.Len() {
		v := *d.At(i)
		if v.Policy != nil && v.Policy.SubBuckets() != nil {
			if v.Policy, _ = partOf(v.Policy, v.Key); v.Policy == nil {
				return &Error{Kind: Malformed, Op: "refund", Err: errors.New("the decision is not one of this store")}
			}
		}
		back.Append(v)
	}
	return s.inner.Refund(ctx, now, back)
}

// Report implements limits.Reporter: that of the store, and how often a second part was asked.
func (s *SubBuckets) Report() limits.Report {
	r := limits.Report{State: string(Up)}
	if i, ok := s.inner.(limits.Reporter); ok {
		r = i.Report()
	}
	r.SecondTries = s.again.Load()
	return r
}

// Close closes the store.
func (s *SubBuckets) Close() error { return closeStore(s.inner) }
