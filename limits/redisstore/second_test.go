package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
	"github.com/spillway-go/spillway/limits"
)

// relay lets each message reach the server, and its answer come back, when a test says so.
type relay struct {
	mu   sync.Mutex
	legs []*leg // nil lets everything pass
}

// leg is one message. Its channels are closed when it may go on; lost makes it fail before it reaches the server.
type leg struct {
	there, back chan struct{}
	lost        error
	done        chan struct{} // it has been carried out
}

func (r *relay) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *relay) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *relay) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.mu.Lock()
		if r.legs == nil || cmd.Name() != "evalsha" {
			r.mu.Unlock()
			return next(ctx, cmd)
		}
		l := &leg{there: make(chan struct{}), back: make(chan struct{}), done: make(chan struct{})}
		r.legs = append(r.legs, l)
		r.mu.Unlock()
		<-l.there
		err := l.lost
		if err == nil {
			err = next(ctx, cmd)
		} else {
			cmd.SetErr(err)
		}
		close(l.done)
		<-l.back
		return err
	}
}

// leg waits for the message with a number.
func (r *relay) leg(t *testing.T, n int) (l *leg) {
	t.Helper()
	wait.Until(t, fmt.Sprint("message ", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.legs) <= n {
			return false
		}
		l = r.legs[n]
		return true
	})
	return l
}

// sent is how many messages have left.
func (r *relay) sent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.legs)
}

// line is callers that come one after the other for one balance.
type line struct {
	t       *testing.T
	s       *Store
	r       *relay
	charges []limits.Charge
	all     []*caller
}

// caller is told when there is something in the channel.
type caller struct {
	*question
	told chan struct{}
	left error
}

// newLine returns one whose first caller's call is on its way.
func newLine(t *testing.T, ctx context.Context, rule limits.Rule) *line {
	t.Helper()
	client := redistest.Shared(t)
	n := &line{t: t, r: new(relay), s: open(t, client, Config{}), charges: one(policy(t, "p", rule), "k", 1)}
	client.AddHook(n.r)
	if _, err := n.s.Take(ctx, time.Time{}, one(n.charges[0].Policy, "warm", 1)); err != nil { // the server knows the script
		t.Fatal(err)
	}
	n.r.legs = make([]*leg, 0, 4)
	q, told := n.question(1), make(chan struct{}, 1)
	n.all = append(n.all, &caller{question: q, told: told})
	first := n.all[0]
	go func() {
		first.left = n.s.batcher.ask(ctx, q, true)
		told <- struct{}{}
	}()
	n.r.leg(t, 0)
	return n
}

func (n *line) question(cost int64) *question {
	n.t.Helper()
	n.charges[0].Cost = cost
	q, err := n.s.ask(time.Time{}, n.charges)
	if err != nil {
		n.t.Fatal(err)
	}
	return q
}

// come lets callers join the line.
func (n *line) come(costs ...int64) {
	n.t.Helper()
	b := n.s.batcher
	for _, cost := range costs {
		q := n.question(cost)
		of, _ := shapeOf(q.charges, q.now)
		b.mu.Lock()
		b.join(b.head(&of), ctx, q)
		b.mu.Unlock()
		n.all = append(n.all, &caller{question: q, told: q.done})
	}
}

// head looks at the call that those who come stand behind.
func (n *line) head(look func(p *pending) bool) bool {
	b := n.s.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	of, _ := shapeOf(n.all[0].charges, "")
	p := b.head(&of)
	return p != nil && look(p)
}

func (n *line) told() (told int) {
	for _, q := range n.all {
		told += len(q.told)
	}
	return told
}

func ones(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = 1
	}
	return all
}

// holding is a rule that grants so much, and does not refill within a test.
func holding(capacity int64) limits.Rule {
	return limits.TokenBucket{Capacity: capacity, Refill: limits.PerDay(1)}
}

// TestASecondCallKeepsTheOrder: whichever of two calls about one balance is carried out first and whichever comes back first, and
// whether one is lost: as much is granted as there is, and to those who came first of those who have an answer.
func TestASecondCallKeepsTheOrder(t *testing.T) {
	t.Parallel()
	lost := &Error{Kind: NotExecuted, Op: "take", Err: errors.New("cut")}
	for _, capacity := range []int64{0, 1, 2, 20, followers, followers + 1, followers + 7} {
		for _, carried := range [][2]int{{0, 1}, {1, 0}} {
			for _, back := range [][2]int{{0, 1}, {1, 0}} {
				for fails := -1; fails < 2; fails++ {
					name := fmt.Sprintf("capacity %d, carried out %v, back %v, lost %d", capacity, carried, back, fails)
					n := newLine(t, ctx, holding(capacity))
					n.come(ones(followers)...)
					legs := []*leg{n.r.leg(t, 0), n.r.leg(t, 1)}
					if fails >= 0 {
						legs[fails].lost = lost
					}
					for _, i := range carried {
						close(legs[i].there)
						<-legs[i].done
					}
					close(legs[back[0]].back)
					if back[0] == 1 {
						wait.Until(t, "the second is back", func() bool { return n.head(func(p *pending) bool { return p.second != nil && p.second.back }) })
						if told := n.told(); told > 0 {
							t.Errorf("%s: %d were told before the first call was back", name, told)
						}
					}
					close(legs[back[1]].back)
					left := capacity
					for i, q := range n.all {
						<-q.told
						answered := fails < 0 || (i == 0) != (fails == 0)
						switch {
						case !answered && !errors.Is(q.err, lost):
							t.Errorf("%s: caller %d: %v, want the loss", name, i, q.err)
						case answered && (q.err != nil || q.d.Allowed != (left > 0)):
							t.Errorf("%s: caller %d: allowed %v, %v, with %d left", name, i, q.d.Allowed, q.err, left)
						}
						if answered {
							left--
						}
					}
				}
			}
		}
	}
}

// TestWhatTheFirstCallGrantsIsToldAtOnce, and what it refuses when the second is back; until then no third call leaves.
func TestWhatTheFirstCallGrantsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	n := newLine(t, ctx, holding(20))
	n.come(ones(followers)...)
	first, second := n.r.leg(t, 0), n.r.leg(t, 1)
	n.come(ones(3 * followers)...)
	if n.r.sent() != 2 {
		t.Fatalf("%d messages, want 2", n.r.sent())
	}
	close(first.there)
	close(first.back)
	<-n.all[0].told // granted: there is nothing to wait for
	n.come(1)       // the second is what others leave beside now
	third := n.r.leg(t, 2)
	close(second.there)
	close(second.back)
	for i, q := range n.all[1:20] {
		if <-q.told; !q.d.Allowed {
			t.Errorf("caller %d is refused", i+1)
		}
	}
	wait.Until(t, "the refused are held", func() bool { return n.head(func(p *pending) bool { return len(p.held) == followers-19 }) })
	n.come(ones(4 * followers)...) // more than the third is about
	if told, sent := n.told(), n.r.sent(); told > 0 || sent != 3 {
		t.Errorf("%d were told and %d messages sent while grants for who came first might come, want 0 and 3", told, sent)
	}
	n.r.mu.Lock()
	n.r.legs = nil // what follows passes
	n.r.mu.Unlock()
	close(third.there)
	close(third.back)
	for i, q := range n.all[20:] {
		if <-q.told; q.err != nil || q.d.Allowed {
			t.Errorf("caller %d: allowed %v, %v", i+20, q.d.Allowed, q.err)
		}
	}
}

// TestWhoMayFollow: as many as the first call is about, or more, and only where all ask one question.
func TestWhoMayFollow(t *testing.T) {
	s := open(t, redistest.Shared(t), Config{})
	bucket := policy(t, "p", holding(100))
	queue := policy(t, "q", limits.Delay{Rule: limits.LeakyBucket{Capacity: 1, Leak: limits.PerSecond(100)}, MaxWait: time.Minute})
	ask := func(p *limits.Policy, cost int64) *question {
		q, err := s.ask(time.Time{}, one(p, "k", cost))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	calls := func(p *limits.Policy, onTheirWay, waiting []int64) *pending {
		first, next := new(pending), new(pending)
		for _, cost := range onTheirWay {
			first.add(ctx, ask(p, cost))
		}
		for _, cost := range waiting {
			next.add(ctx, ask(p, cost))
		}
		first.rows, first.away, first.line = first.waiters, true, []*pending{next}
		return first
	}
	other := ones(followers)
	other[followers/2] = 2
	for name, c := range map[string]struct {
		p                   *limits.Policy
		onTheirWay, waiting []int64
		may                 bool
	}{
		"a crowd":                {bucket, ones(1), ones(followers), true},
		"too few":                {bucket, ones(1), ones(followers - 1), false},
		"as many":                {bucket, ones(99), ones(99), true},
		"fewer":                  {bucket, ones(99), ones(98), false},
		"another cost":           {bucket, []int64{2}, ones(followers), false},
		"other costs wait":       {bucket, ones(1), other, false},
		"other costs on the way": {bucket, other, ones(followers), false},
		"a queue":                {queue, ones(1), ones(followers), false},
	} {
		if may := s.batcher.mayFollow(calls(c.p, c.onTheirWay, c.waiting)); may != c.may {
			t.Errorf("%s: may follow: %v", name, may)
		}
	}
	for name, change := range map[string]func(p *pending){
		"it is not on its way":       func(p *pending) { p.away = false },
		"it has a second":            func(p *pending) { p.second = new(pending) },
		"it has grants to pass on":   func(p *pending) { p.held = p.rows },
		"nobody waits":               func(p *pending) { p.line = nil },
		"one may be a refund":        func(p *pending) { p.rows[0].back = []*limits.Verdict{{}} },
		"one wants a second opinion": func(p *pending) { p.rows[0].refused = new(limits.Decision) },
	} {
		p := calls(bucket, ones(1), ones(followers))
		if change(p); s.batcher.mayFollow(p) {
			t.Errorf("%s, and others leave beside it", name)
		}
	}
}

// TestOtherCallsOfAMessageKeepTheirAnswers: those that ask different things, or have no answer.
func TestOtherCallsOfAMessageKeepTheirAnswers(t *testing.T) {
	call := func(err error, allowed ...bool) *pending {
		p := &pending{query: query{err: err}}
		for _, a := range allowed {
			p.waiters = append(p.waiters, &question{d: limits.Decision{Allowed: a}})
		}
		return p
	}
	lost := errors.New("cut")
	pair, other := call(lost, true, true), call(nil, false, true) // what is left of an answer that made no sense
	pair.second = call(nil, false, true)
	pair.second.back = true
	without := call(nil, false) // grants to take over
	without.second = call(lost, true)
	without.second.waiters[0].err = lost
	without.second.back = true
	b := newBatcher(nil, true, true)
	b.inFlight = 1
	b.all.Add(1)
	due, paired := b.arrive([]*pending{pair, other, without})
	var told []bool
	for _, q := range due {
		told = append(told, q.err == nil && q.d.Allowed)
	}
	if want := []bool{false, false, true, false, false, true, false, false}; !paired || !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// TestWhoLeavesAPairMayHaveBeenCharged: its call was carried out, and waits for the second.
func TestWhoLeavesAPairMayHaveBeenCharged(t *testing.T) {
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	n := newLine(t, leaving, holding(0))
	n.come(ones(followers)...)
	first, second := n.r.leg(t, 0), n.r.leg(t, 1)
	close(first.there)
	close(first.back)
	wait.Until(t, "it is held", func() bool { return n.head(func(p *pending) bool { return len(p.held) == 1 }) })
	leave()
	<-n.all[0].told
	wants(t, failed(leaving, "take", n.all[0].left), Cancelled, "may have been carried out")
	close(second.there)
	close(second.back)
	for _, q := range n.all[1:] {
		<-q.told
	}
}

// TestAHotBalance: many want one balance, in pairs of calls. Everybody is answered, and exactly as much is granted as there is.
func TestAHotBalance(t *testing.T) {
	t.Parallel()
	client := redistest.Shared(t)
	s := open(t, client, Config{})
	const capacity, callers, each = 3000, 200, 20
	charges := one(policy(t, "p", holding(capacity)), "k", 1)
	var mu sync.Mutex
	granted := 0
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				d, err := s.Take(ctx, time.Time{}, charges)
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					mu.Lock()
					granted++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if granted != capacity {
		t.Errorf("%d granted, want %d", granted, capacity)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	b := s.batcher
	if len(b.heads) > 0 || len(b.ready) > 0 || b.inFlight != 0 {
		t.Errorf("left over: %d heads, %d ready, %d in flight", len(b.heads), len(b.ready), b.inFlight)
	}
}
