package gameday

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// gauge is what a second looked like from behind.
type gauge struct {
	at                       time.Time
	limit, inFlight, waiting int // sums of both gateways
	store                    int // how many gateways have their Redis
	inside                   int // requests inside of the service
}

// gauges are read once a second.
type gauges struct {
	mu   sync.Mutex
	all  []gauge
	stop func()
}

// every calls do at this pace until the returned function is called, which waits for the last call.
func every(pace time.Duration, do func()) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(pace)
		defer t.Stop()
		for {
			select {
			case <-end:
				return
			case <-t.C:
				do()
			}
		}
	}()
	return sync.OnceFunc(func() { close(end); <-done })
}

func watch(s *stage) *gauges {
	g := &gauges{}
	g.stop = every(time.Second, func() {
		now := gauge{at: time.Now()}
		for _, one := range s.gateways {
			v, err := one.look()
			if err != nil {
				continue
			}
			now.limit, now.inFlight, now.waiting = now.limit+v.Shed.Limit, now.inFlight+v.Shed.InFlight, now.waiting+v.Shed.Waiting
			if v.Shed.Store.State == "up" {
				now.store++
			}
		}
		if c, err := s.service.counts(); err == nil {
			now.inside = c.Waiting
		}
		g.mu.Lock()
		g.all = append(g.all, now)
		g.mu.Unlock()
	})
	return g
}

// pinger asks the service in Go directly, to know how late the machine itself is.
type pinger struct {
	mu   sync.Mutex
	took []time.Duration
	stop func()
}

func ping(addr string) *pinger {
	p := &pinger{}
	own := &http.Transport{}
	client := &http.Client{Transport: own, Timeout: 5 * time.Second}
	halt := every(50*time.Millisecond, func() {
		begin := time.Now()
		res, err := client.Get("http://" + addr + "/ping")
		if err == nil {
			res.Body.Close()
		}
		p.mu.Lock()
		p.took = append(p.took, time.Since(begin))
		p.mu.Unlock()
	})
	p.stop = func() { halt(); own.CloseIdleConnections() }
	return p
}

// take returns what was measured since it was last asked.
func (p *pinger) take() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.took
	p.took = nil
	return all
}

// streams are the clients that stay connected all day: five that listen to events and three that talk over WebSockets. They
// come back when they are cut off.
type streams struct {
	events, breaks, answers atomic.Int64
	stop                    func()
}

func (d *day) stream() *streams {
	s := &streams{}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	again := func(do func()) {
		for ctx.Err() == nil {
			do()
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	for i := range 5 {
		who := d.crowd.free[i]
		wg.Go(func() { again(func() { s.listen(ctx, who) }) })
	}
	for i := range 3 {
		who := d.crowd.free[5+i]
		wg.Go(func() {
			again(func() {
				if talk(d.balancer.addrs[d.balancer.pick()], who.key, func() { s.answers.Add(1) }, ctx.Done()) {
					s.breaks.Add(1)
				}
			})
		})
	}
	s.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	return s
}

// listen reads an event stream until it breaks.
func (s *streams) listen(ctx context.Context, who *customer) {
	r, err := listening.request(ctx, who)
	if err != nil {
		return
	}
	res, err := who.client.Do(r)
	if err == nil {
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data:") {
				s.events.Add(1)
			}
		}
	}
	if ctx.Err() == nil {
		s.breaks.Add(1)
	}
}

// following sees when an item of the pumpkin goes up, and when it has come down for good.
type following struct {
	mu              sync.Mutex
	raised, cleared time.Time
	stop            func()
}

// follow asks both gateways for their document.
func (d *day) follow(id string) *following {
	f := &following{}
	f.stop = every(200*time.Millisecond, func() {
		up := slices.ContainsFunc(d.gateways, func(g *gateway) bool { return g.tells(id) })
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case up && f.raised.IsZero():
			f.raised = time.Now()
		case up:
			f.cleared = time.Time{}
		case !f.raised.IsZero() && f.cleared.IsZero():
			f.cleared = time.Now()
		}
	})
	return f
}

func (f *following) times() (raised, cleared time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.raised, f.cleared
}

// up reports whether the item is up.
func (f *following) up() bool {
	raised, cleared := f.times()
	return !raised.IsZero() && cleared.IsZero()
}
