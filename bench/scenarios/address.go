package scenarios

import (
	"encoding/binary"
	"net/netip"
)

// Address returns the address of the population's client with that number; the zero Addr where none is told. In a network that
// has fewer addresses than clients some share one.
func (p *Population) Address(client int) netip.Addr {
	if !p.From.IsValid() {
		return netip.Addr{}
	}
	base := p.From.Masked().Addr().AsSlice()
	last := base[len(base)-4:]
	n := uint64(client) % (1 << min(32, p.From.Addr().BitLen()-p.From.Bits()))
	binary.BigEndian.PutUint32(last, binary.BigEndian.Uint32(last)+uint32(n))
	addr, _ := netip.AddrFromSlice(base)
	return addr
}
