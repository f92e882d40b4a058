package identity

import (
	"net/netip"
	"strings"
)

// Bounds of the walk through a forwarding header, counted from its right end.
const (
	maxHops  = 32
	maxBytes = 4 << 10
)

// forwarding is the one header that proxies are believed to write, and how to read it.
type forwarding struct {
	header string // canonical
	// element cuts the last element off a line: where it starts, or -1 if it cannot be told. Nil for headers that hold a
	// single address.
	element func(line string) int
	// address reads an element.
	address func(element string) netip.Addr
}

func forwardingOf(name string) forwarding {
	switch {
	case name == "", strings.EqualFold(name, "x_forwarded_for"), strings.EqualFold(name, "X-Forwarded-For"):
		return forwarding{"X-Forwarded-For", lastInList, parseAddress}
	case strings.EqualFold(name, "Forwarded"):
		return forwarding{"Forwarded", lastInQuotedList, parseForwarded}
	}
	return forwarding{name, nil, parseAddress}
}

// client returns the address of the client that the trusted peer speaks for: the rightmost one that is not itself trusted.
// If all are, the request began inside and the leftmost is it, or the peer itself where there is no header. The zero Addr
// means that the header cannot be read that far.
func (f forwarding) client(lines []string, peer netip.Addr, trusted prefixes) netip.Addr {
	if f.element == nil {
		if len(lines) == 0 {
			return peer
		}
		return f.address(lines[len(lines)-1]) // the nearest proxy wrote last
	}
	client, hops, budget := peer, 0, maxBytes
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			window := line[max(0, len(line)-budget):]
			start := f.element(window)
			if hops++; start < 0 || hops > maxHops || start == 0 && len(window) < len(line) {
				return netip.Addr{}
			}
			if client = f.address(window[start:]); !trusted.contain(client) {
				return client // or no address, which is in no network
			}
			budget -= len(window) - start + 1
			if budget <= 0 {
				return netip.Addr{}
			}
			rest := len(line) - len(window) + start - 1 // where the comma is, -1 when there was none
			if more = rest >= 0; more {
				line = line[:rest]
			}
		}
	}
	return client
}

// lastInList finds the last element of a comma-separated list.
func lastInList(line string) int { return strings.LastIndexByte(line, ',') + 1 }

// lastInQuotedList does the same where elements may hold quoted strings. It reads from the right, so that a quote that the
// client left open cannot swallow what proxies wrote after it. No address needs a backslash, so whatever has one is not
// read.
func lastInQuotedList(line string) int {
	quoted := false
	for i := len(line) - 1; i >= 0; i-- {
		switch line[i] {
		case '"':
			quoted = !quoted
		case '\\':
			return -1
		case ',':
			if !quoted {
				return i + 1
			}
		}
	}
	if quoted {
		return -1
	}
	return 0
}

// parseForwarded reads the "for" parameter of one element of a Forwarded header (RFC 7239). Obfuscated and unknown nodes
// are no addresses, and neither is an element with two of them.
func parseForwarded(element string) (addr netip.Addr) {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "for") {
			continue
		}
		if addr.IsValid() {
			return netip.Addr{}
		}
		if value = strings.Trim(value, " \t"); len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		if addr = parseAddress(value); !addr.IsValid() {
			return netip.Addr{}
		}
	}
	return addr
}
