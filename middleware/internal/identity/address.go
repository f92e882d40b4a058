package identity

import (
	"fmt"
	"net/netip"
	"strings"
)

// nat64 is the well-known prefix behind which IPv4 clients reach IPv6-only servers (RFC 6052). Without looking inside, all
// of them would be one client, for they share a /64.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// parseAddress reads an address as RemoteAddr and forwarding headers spell it: with or without port, IPv6 with or without
// brackets, with or without zone. The result is unmapped and has no zone, so that one address has one form. It is the zero
// Addr if text is no address, as for unix sockets, or the unspecified one, which nobody can send from.
func parseAddress(text string) netip.Addr {
	text = strings.Trim(text, " \t")
	var addr netip.Addr
	switch colons := strings.Count(text, ":"); {
	case strings.HasPrefix(text, "["):
		if inner, bare := strings.CutSuffix(text[1:], "]"); bare {
			if addr, _ = netip.ParseAddr(inner); addr.Is4() {
				return netip.Addr{}
			}
			break
		}
		fallthrough
	case colons == 1:
		withPort, _ := netip.ParseAddrPort(text)
		addr = withPort.Addr()
	default:
		addr, _ = netip.ParseAddr(text)
	}
	if addr = addr.Unmap().WithZone(""); addr.IsUnspecified() {
		return netip.Addr{}
	}
	return addr
}

// canonical reduces an address to what names a client: IPv4 whole, of IPv6 the first bits.
func canonical(addr netip.Addr, bits int) netip.Addr {
	if nat64.Contains(addr) {
		b := addr.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	if addr.Is6() {
		prefix, _ := addr.Prefix(bits) // New has checked the bits
		return prefix.Addr()
	}
	return addr
}

// prefixes is a list of networks in the same form that parseAddress gives addresses.
type prefixes []netip.Prefix

func compilePrefixes(field string, list []netip.Prefix) (prefixes, error) {
	out := make(prefixes, 0, len(list))
	for i, p := range list {
		if !p.IsValid() {
			return nil, fmt.Errorf("clients.%s[%d] is not a network; write one as 10.0.0.0/8 or 2001:db8::/32", field, i)
		}
		if p.Addr().Is4In6() {
			if p.Bits() < 96 {
				return nil, fmt.Errorf("clients.%s[%d] %v holds more than IPv4; write it as 0.0.0.0/0 and ::/0", field, i, p)
			}
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func (list prefixes) contain(addr netip.Addr) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
