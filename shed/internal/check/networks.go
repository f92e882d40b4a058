package check

import (
	"math"
	"net/netip"
	"slices"
)

// tooMuch is the share of all addresses that nobody's proxies have: a quarter.
const tooMuch = 0.25

// Everybody tells whether networks together hold so many of all public addresses of IPv4, or of IPv6, that they mean everybody.
// The list may overlap.
func Everybody(list []netip.Prefix) bool {
	global := netip.MustParsePrefix("2000::/3") // all of IPv6 that is given out
	var v4, v6 float64
	for i, p := range list {
		p = p.Masked()
		inside := func(q netip.Prefix) bool { return p.IsValid() && q.Bits() <= p.Bits() && q.Masked().Contains(p.Addr()) }
		if !p.IsValid() || slices.ContainsFunc(list[:i], inside) ||
			slices.ContainsFunc(list[i+1:], func(q netip.Prefix) bool { return inside(q) && q.Bits() < p.Bits() }) {
			continue // another one of the list holds it
		}
		switch {
		case p.Addr().Is4():
			v4 += math.Exp2(-float64(p.Bits()))
		case p.Addr().Is4In6():
			v4 += math.Exp2(-max(0, float64(p.Bits()-96)))
		case p.Bits() <= global.Bits() && p.Contains(global.Addr()):
			v6++
		case global.Contains(p.Addr()):
			v6 += math.Exp2(-float64(p.Bits() - global.Bits()))
		}
	}
	return v4 >= tooMuch || v6 >= tooMuch
}
