package identity

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
)

// peer is what the address at the other end of a connection says by itself.
type peer struct {
	text    string     // as net/http has it
	addr    netip.Addr // the zero Addr if that is no address
	trusted bool       // it speaks for others, so that its own address names nobody
	ip      netip.Addr // what names the client, where it does
	name    string     // and the name that it gives; "" where it gives none
}

// peers remembers some peers: the requests of one connection come from the same address, and it need be read only once. Newer ones
// push out older ones at random, so that its size is fixed.
type peers struct {
	seed  maphash.Seed
	slots [1024]atomic.Pointer[peer]
}

// peer returns what is known about the peer of that address.
func (r *Resolver) peer(text string) *peer {
	slot := &r.peers.slots[maphash.String(r.peers.seed, text)%uint64(len(r.peers.slots))]
	if p := slot.Load(); p != nil && p.text == text {
		return p
	}
	p := &peer{text: text, addr: parseAddress(text)}
	if p.trusted = r.trusted.contain(p.addr); !p.trusted {
		p.ip = canonical(p.addr, r.ipv6Bits)
		p.name = r.nameOf(p.ip)
	}
	if len(text) <= maxPeer {
		slot.Store(p)
	}
	return p
}

// maxPeer is the longest address that is remembered; no real one is longer.
const maxPeer = 64
