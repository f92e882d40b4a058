package gameday

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

func botAct() *act {
	return &act{
		name: "bot", title: "The bot that changes its keys and addresses",
		about: "A bot asks 100 times a second, each time with another key and from another address of the two networks that it has. Then it has rented " +
			"addresses everywhere, and each request comes from another network.",
		expect: "A key that nobody gave out is no identity and new addresses make no new customer: each network gets what one network may have, and nobody else notices. " +
			"Against addresses from everywhere no quota helps; paying clients are served all the same, because they go first.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			bot := &group{name: "bot", members: d.crowd.bot, rate: 50, ask: item}
			from := time.Now()
			length := d.length(6*time.Second, 60*time.Second)
			s.play(ctx, length, append(d.crowd.ordinary(), bot)...)
			s.during("two networks", from, time.Now())
			s.served(.99, "paying", "free")
			c, err := d.service.counts()
			if err != nil {
				return err
			}
			s.within(perNetwork, excess{}, c, d.crowd.bot...)
			s.gets(perNetwork, length, c, d.crowd.bot...)
			from = time.Now()
			everywhere := &group{name: "bot everywhere", members: d.crowd.everywhere, rate: 100, ask: item}
			s.play(ctx, d.length(4*time.Second, 30*time.Second), append(d.crowd.ordinary(), everywhere)...)
			to := time.Now()
			s.during("addresses everywhere", from, to)
			s.recovers(ctx, to, d.crowd.ordinary(), "paying", "free")
			s.servedSince(from, "while it came from everywhere", .99, "paying")
			s.p99("paying", deadline)
			s.told()
			return nil
		},
	}
}

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
			orders := &group{name: "orders", members: d.crowd.searchers, rate: 1, ask: order}
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
			s.servedSince(from, "while bodies came slowly", .99, "paying")
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
