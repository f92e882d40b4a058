package gameday

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lorisWithin is how long a gateway may bear a client that sends its request byte by byte: ten seconds, and what the machine is late.
const lorisWithin = 15 * time.Second

// bodyWithin is the same for a body: the grace of two seconds in the file, and what the machine is late.
const bodyWithin = 6 * time.Second

func lorisAct() *act {
	return &act{
		name: "loris", title: "Clients that send their request byte by byte",
		about:  "A hundred connections send a header a second and never finish. Then forty others, each with an account and an address of its own, send the body of an order in the same way.",
		expect: "They cost connections and nothing else: customers are served as ever. The gateway hangs up on those who do not finish their header within ten seconds, or whose body does not come at the pace of the file.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			orders := &group{name: "orders", members: d.crowd.searchers, rate: 1, ask: ask{method: http.MethodPost, path: "/orders", body: 32}}
			ordinary := append(d.crowd.ordinary(), orders)
			const headers = 100
			var cut atomic.Int64
			var wg sync.WaitGroup
			halt := make(chan struct{})
			from := time.Now()
			for i := range headers {
				wg.Go(func() {
					if trickle(d.gateways[i%2].listen, loopback(77, 1, byte(i+1)), "GET /items/1 HTTP/1.1\r\nHost: shop\r\n", "X: y\r\n", halt) {
						cut.Add(1)
					}
				})
			}
			s.play(ctx, lorisWithin, ordinary...)
			hung := cut.Load()
			close(halt)
			wg.Wait()
			s.during("slow headers", from, time.Now())
			s.served(.99, "paying", "free", "orders")
			s.p99("paying", deadline)
			s.hopes("connections cut that did not finish their header", hung == headers, fmt.Sprintf("%d of %d", hung, headers), "all within %v", lorisWithin)

			halt = make(chan struct{})
			from = time.Now()
			cut.Store(0)
			for i, who := range d.crowd.slow {
				wg.Go(func() {
					if trickle(d.gateways[i%2].listen, who.from, "POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Length: 1000\r\nDay-Client: "+who.name+"\r\nX-API-Key: "+who.key+"\r\n\r\n", "x", halt) {
						cut.Add(1)
					}
				})
			}
			s.play(ctx, bodyWithin, ordinary...)
			hung = cut.Load()
			close(halt)
			wg.Wait()
			to := time.Now()
			s.during("slow bodies", from, to)
			s.servedOf("paying clients served in time while bodies came slowly", .99, s.since(from, "paying"))
			s.hopes("connections cut that did not send their body", hung == int64(len(d.crowd.slow)), fmt.Sprintf("%d of %d", hung, len(d.crowd.slow)), "all within %v", bodyWithin)
			s.recovers(ctx, to, ordinary, "paying", "free", "orders")
			s.told()
			return nil
		},
	}
}

// trickle sends what begins a request and then a little every second, until it is cut off (true) or halt is closed.
func trickle(addr string, from net.IP, begin, more string, halt <-chan struct{}) (cut bool) {
	dialer := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: from}}
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	io.WriteString(conn, begin)
	buffer := make([]byte, 1024)
	for {
		select {
		case <-halt:
			return false
		default:
		}
		conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := conn.Read(buffer); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
		if _, err := io.WriteString(conn, more); err != nil {
			return true
		}
	}
}

// spare is by how much a gateway may hold more than after its start: connections to Redis that it keeps, at most 32 for quotas and 4
// for the pumpkin, and those to the sentinels.
const spare = 40

func eveningAct() *act {
	return &act{
		name: "evening", title: "Quiet evening", cuts: true,
		about:  "Everybody goes home.",
		expect: "Nothing is left over: nothing in flight, waiting or parked, no stream, Redis decides, nobody is told anything, and no goroutine or descriptor more than after the start.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			d.streams.stop()
			d.crowd.hangUp()
			if _, err := d.service.control("hangup", nil); err != nil {
				return err
			}
			for _, g := range d.gateways {
				var v view
				var held resources
				rest := func() bool {
					var err error
					if v, err = g.look(); err != nil {
						return false
					}
					if held, err = g.holds(); err != nil {
						return false
					}
					st := &v.Shed
					return st.InFlight == 0 && st.Waiting == 0 && st.Parked == 0 && st.Streams == 0 && v.Gateway.Streams == 0 && v.Shed.Store.State == "up" &&
						held.goroutines <= g.atRest.goroutines+spare/4 && held.files <= g.atRest.files+spare && budgets(&v) == 0
				}
				begin := time.Now()
				for !rest() && time.Since(begin) < 20*time.Second && pause(ctx, 100*time.Millisecond) {
				}
				st := &v.Shed
				s.expects(g.name+": in flight, waiting, parked, streams", st.InFlight+st.Waiting+st.Parked+st.Streams+v.Gateway.Streams+budgets(&v) == 0,
					fmt.Sprintf("%d, %d, %d, %d", st.InFlight, st.Waiting, st.Parked, st.Streams+v.Gateway.Streams+budgets(&v)), "0")
				s.expects(g.name+": store", v.Shed.Store.State == "up", v.Shed.Store.State, "up")
				s.expects(g.name+": goroutines", held.goroutines <= g.atRest.goroutines+spare/4, fmt.Sprintf("%d, after the start %d", held.goroutines, g.atRest.goroutines), "≤ %d more", spare/4)
				s.expects(g.name+": descriptors", held.files <= g.atRest.files+spare, fmt.Sprintf("%d, after the start %d", held.files, g.atRest.files), "≤ %d more: connections to Redis that it keeps", spare)
				var page string
				err := g.get("/dashboard/", &page)
				s.expects(g.name+": the live page is there", err == nil && page != "", fmt.Sprintf("%d bytes", len(page)), "> 0")
			}
			c, err := d.service.control("counts", nil)
			if err != nil {
				return err
			}
			s.expects("inside of the service", c.Waiting == 0, fmt.Sprint(c.Waiting), "0")
			for _, g := range d.gateways { // one that the race detector has complained of exits with 66
				err := g.stop()
				s.expects(g.name+" ends when asked", err == nil, orZero(err), "exit 0")
			}
			return nil
		},
	}
}

// budgets is how many long-lived requests are open.
func budgets(v *view) (n int) {
	for _, b := range v.Shed.Budgets {
		n += b.InUse
	}
	return n
}
