package identity

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestRememberedPeersAreTheSameAsNewOnes(t *testing.T) {
	r := resolver(t, behindProxies)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 20_000 { // more than are remembered, and each twice
				text := fmt.Sprintf("192.0.%d.%d:%d", i>>8&0xff, i&0xff, worker%2+1)
				want := fmt.Sprintf("ip:192.0.%d.%d", i>>8&0xff, i&0xff)
				for range 2 {
					if got := r.Identify(request(text), ""); got.Client != want || "ip:"+got.IP.String() != want || got.Peer != got.IP {
						t.Errorf("%s is %+v", text, got)
						return
					}
				}
			}
		})
	}
	all.Wait()
	for range 2 {
		if got := r.Identify(request("10.0.0.1:1", "X-Forwarded-For", "9.9.9.9"), "").Client; got != "ip:9.9.9.9" {
			t.Errorf("through a proxy: %s", got)
		}
		if got := r.Identify(request("10.0.0.1:1", "X-Forwarded-For", "9.9.9.8"), "").Client; got != "ip:9.9.9.8" {
			t.Errorf("through the same proxy: %s", got)
		}
	}
	for _, text := range []string{"@", strings.Repeat("x", 1000)} {
		for range 2 {
			if got := r.Identify(request(text), ""); got.Client != "" || got.Peer.IsValid() {
				t.Errorf("%.20s: %+v", text, got)
			}
		}
	}
	for i := range r.peers.slots {
		if p := r.peers.slots[i].Load(); p != nil && len(p.text) > maxPeer {
			t.Errorf("%d bytes are remembered", len(p.text))
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.Identify(request0, "") }); n > 0 {
		t.Errorf("a peer that is known costs %v allocations", n)
	}
}

var request0 = request("192.0.2.1:1")
