package redistest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between a client and a server and loses or delays what the server answers. It forwards bytes as they come
// until it is told otherwise.
type Proxy struct {
	// Addr is where the proxy listens.
	Addr   string
	target string

	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex // guards what follows
	links  map[*link]struct{}
	delay  time.Duration
	down   bool
	closed bool
	traps  []*Trap
}

// A Trap waits for one request and does something to its reply.
type Trap struct {
	match  []byte
	delay  time.Duration // 0 cuts
	sprung chan struct{}
}

// Sprung is closed when the request has come and its reply has been cut or delayed.
func (t *Trap) Sprung() <-chan struct{} { return t.sprung }

// NewProxy starts a proxy before target, an address. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, links: make(map[*link]struct{})}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

// Dial is a dialer for client options: it goes through the proxy where the client wants its target, and directly elsewhere.
// So one node of a cluster can be put behind it.
func (p *Proxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == p.target {
		addr = p.Addr
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// Delay makes every reply from now on arrive d later. 0 ends that.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// CutAfter lets the next request that contains match (in any case) through, waits until the server has answered it, throws
// the reply away and cuts the connection: executed, and nobody knows.
func (p *Proxy) CutAfter(match string) *Trap { return p.arm(match, 0) }

// DelayAfter delays the reply to the next request that contains match (in any case), and all that follows on that
// connection.
func (p *Proxy) DelayAfter(match string, d time.Duration) *Trap { return p.arm(match, d) }

func (p *Proxy) arm(match string, d time.Duration) *Trap {
	t := &Trap{match: bytes.ToLower([]byte(match)), delay: d, sprung: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
	return t
}

// Cut ends all connections and refuses new ones (they are accepted and closed) until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.cut()
}

// Heal accepts connections again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

func (p *Proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.down || p.closed
		p.mu.Unlock()
		if refuse {
			c.Close()
			continue
		}
		s, err := net.Dial("tcp", p.target)
		if err != nil {
			c.Close()
			continue
		}
		p.serve(&link{p: p, client: c, server: s, replies: make(chan reply, 1024), done: make(chan struct{})})
	}
}

// link is one connection through the proxy.
type link struct {
	p              *Proxy
	client, server net.Conn
	replies        chan reply
	done           chan struct{} // closed with the connections
	once           sync.Once

	mu    sync.Mutex
	armed *Trap         // sprung on the next reply
	slow  time.Duration // of this link alone
}

type reply struct {
	bytes []byte
	due   time.Time
}

func (l *link) close() {
	l.once.Do(func() { close(l.done) })
	l.client.Close()
	l.server.Close()
}

func (p *Proxy) serve(l *link) {
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.down || p.closed {
		l.close()
	}
	p.mu.Unlock()
	p.wg.Go(l.requests)
	p.wg.Go(func() {
		defer close(l.replies)
		defer l.close()
		l.read()
	})
	p.wg.Go(func() {
		l.write()
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	})
}

// requests forwards what the client says, looking for requests that a trap waits for.
func (l *link) requests() {
	defer l.close()
	b := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(b)
		if err != nil {
			return
		}
		l.spot(bytes.ToLower(b[:n]))
		if _, err := l.server.Write(b[:n]); err != nil {
			return
		}
	}
}

func (l *link) spot(request []byte) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	for i, t := range l.p.traps {
		if bytes.Contains(request, t.match) {
			l.p.traps = append(l.p.traps[:i:i], l.p.traps[i+1:]...)
			l.mu.Lock()
			l.armed = t
			l.mu.Unlock()
			return
		}
	}
}

// read takes the server's replies and says when each is due.
func (l *link) read() {
	for {
		b := make([]byte, 16<<10)
		n, err := l.server.Read(b)
		if err != nil {
			return
		}
		l.mu.Lock()
		t := l.armed
		l.armed = nil
		if t != nil {
			l.slow += t.delay
		}
		slow := l.slow
		l.mu.Unlock()
		if t != nil {
			close(t.sprung)
			if t.delay == 0 {
				return
			}
		}
		l.p.mu.Lock()
		slow += l.p.delay
		l.p.mu.Unlock()
		l.replies <- reply{b[:n], time.Now().Add(slow)}
	}
}

// write hands the replies to the client when they are due, in their order.
func (l *link) write() {
	broken := false
	for r := range l.replies {
		if broken {
			continue // drain, so that read ends
		}
		if wait := time.Until(r.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-l.done:
				broken = true
				continue
			}
		}
		if _, err := l.client.Write(r.bytes); err != nil {
			broken = true
			l.close()
		}
	}
}
