package gameday

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
)

// crowd is everybody who uses the shop.
type crowd struct {
	paying, free, payers, searchers, greedy, screen, flood, strangers, bot, everywhere, slow []*customer
	partner                                                                                  *customer // a Go program with its own admission control

	keys    keys
	news    *pumpkin.Client
	calling *middleware.Transport
}

// people makes n customers of one kind. Each calls from an address of its own, in the network that is theirs.
func people(name, plan string, n int, network byte) (all []*customer) {
	for i := range n {
		all = append(all, &customer{name: fmt.Sprintf("%s-%d", name, i), plan: plan, from: loopback(20, network, byte(i+1))})
	}
	return all
}

func newCrowd() *crowd {
	c := &crowd{
		paying: people("paying", "premium", 4, 1), free: people("free", "", 20, 2), payers: people("payer", "premium", 2, 3),
		searchers: people("searcher", "", 4, 4), greedy: people("greedy", "", 1, 5), screen: people("screen", "", 1, 6),
		flood: people("flood", "", 40, 7), strangers: people("stranger", "", 3, 8), slow: people("slow", "", 40, 9),
	}
	c.partner = people("partner", "", 1, 10)[0]
	for i := range 2 { // it has rented two networks
		c.bot = append(c.bot, &customer{name: fmt.Sprintf("bot-%d", i), from: loopback(66, byte(i), 1), rotate: true})
	}
	c.everywhere = []*customer{{name: "bot-everywhere", from: loopback(67, 0, 1), rotate: true, roam: true}}
	return c
}

// all are those who have a key, and those who have none.
func (c *crowd) all() []*customer {
	return slices.Concat(c.accounts(), c.strangers, c.bot, c.everywhere)
}

// accounts are those who have a key.
func (c *crowd) accounts() []*customer {
	return slices.Concat(c.paying, c.free, c.payers, c.searchers, c.greedy, c.screen, c.flood, c.slow, []*customer{c.partner})
}

// open gives everybody their keys and connections.
func (c *crowd) open(b *balancer) (err error) {
	for _, who := range c.all() {
		who.key = c.keys[who.name]
		who.open(b)
	}
	quiet := slog.New(slog.DiscardHandler)
	base := c.partner.client.Transport
	if c.news, err = pumpkin.NewClient(pumpkin.ClientConfig{URL: "http://shop/pumpkin.json", Transport: base, Logger: quiet}); err != nil {
		return err
	}
	c.calling, err = middleware.NewTransport(middleware.TransportConfig{
		Base: base, Features: c.news, Wait: deadline,
		Feature: func(r *http.Request) string {
			if r.URL.Path == "/search" {
				return "search"
			}
			return ""
		},
	})
	if err != nil {
		return err
	}
	c.partner.client = &http.Client{Transport: tells{c.calling, c.news}}
	return nil
}

// tells shows the pumpkin's client what every answer says about the newest document.
type tells struct {
	http.RoundTripper
	news *pumpkin.Client
}

// RoundTrip makes the call.
func (t tells) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		t.news.Seen(res.Header.Get("Pumpkin-Rev"))
	}
	return res, err
}

// hangUp closes the connections that nobody uses.
func (c *crowd) hangUp() {
	for _, who := range c.all() {
		if who.client != nil {
			who.client.CloseIdleConnections()
		}
	}
	if c.calling != nil {
		c.calling.CloseIdleConnections()
	}
	http.DefaultClient.CloseIdleConnections()
}

// close ends what the crowd has running.
func (c *crowd) close() {
	if c.news != nil {
		c.news.Close()
	}
	if c.calling != nil {
		_ = c.calling.Close() // it has no error
	}
	c.hangUp()
}

// The groups of an ordinary day.
func (c *crowd) ordinary() []*group {
	return []*group{
		{name: "paying", members: c.paying, rate: 3, ask: proItem},
		{name: "free", members: c.free, rate: 1.5, ask: item},
		{name: "payments", members: c.payers, rate: 1, ask: payment},
		{name: "partner", members: []*customer{c.partner}, rate: 4, ask: search},
	}
}

// greedily is the greedy client at so many requests a second.
func (c *crowd) greedily(rate float64) *group {
	return &group{name: "greedy", members: c.greedy, rate: rate, ask: item}
}

// flooding is the flood: with its two retries it asks for ten times what the service can do.
func (c *crowd) flooding() *group {
	return &group{name: "flood", members: c.flood, rate: 10 * serviceCapacity / float64(len(c.flood)) / 3, retries: 2, ask: item}
}
