package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// pins say what each client is pinned by. Whatever can draw from one balance has to be counted by one member: so clients belong
// together by their holder's name, or, where a rule that applies to them counts by address, by that. They cannot by both.
type pins struct {
	listed     bool            // API keys are those of a list, which knows whose they are
	byAddress  map[string]bool // by how clients are known: whether a rule by address applies to them
	ipv4, ipv6 int             // how many bits of an address belong together
	warning    string          // what is one quota no more; else empty
}

// The networks that limits per ip_prefix count.
const ipv4Prefix, ipv6Prefix = 24, 48

func pinsOf(cfg shed.Config) *pins {
	p := &pins{listed: cfg.Clients.APIKeys != nil, byAddress: map[string]bool{}, ipv4: 32, ipv6: 128}
	for _, l := range cfg.Limits {
		if l.Per != shed.PerIP && l.Per != shed.PerIPPrefix {
			continue
		}
		if l.Per == shed.PerIPPrefix {
			p.ipv4, p.ipv6 = ipv4Prefix, ipv6Prefix
		}
		for _, by := range []string{"api_key", "ip", ""} {
			p.byAddress[by] = p.byAddress[by] || appliesTo(l, by)
		}
		if p.warning == "" && appliesTo(l, "api_key") {
			p.warning = split(cfg, l)
		}
	}
	return p
}

func appliesTo(l shed.Limit, by string) bool { return len(l.For) == 0 || slices.Contains(l.For, by) }

// split says which limit per client is no single quota because byAddress pins those with API keys by their addresses.
func split(cfg shed.Config, byAddress shed.Limit) string {
	if ways := cfg.Clients.Identify; len(ways) > 0 && !slices.Contains(ways, "api_key") {
		return ""
	}
	for _, l := range cfg.Limits {
		if (l.Per == shed.PerClient || l.Per == shed.PerClientRoute) && appliesTo(l, "api_key") {
			return fmt.Sprintf("-peers: limit %q counts by address, so that clients belong together by their addresses; who comes from several "+
				"with one API key may have a quota of limit %q in each gateway; write for: [ip] to %q, or share the limits in a store",
				byAddress.Name, l.Name, byAddress.Name)
		}
	}
	return ""
}

// of returns what the client of r is pinned by; "" where nothing is known of it. The key is of no use as a name but for this: it
// may hold an API key.
func (p *pins) of(r *http.Request, caller middleware.Caller, keyHeader string) string {
	if caller.Client == "" { // refused, or free of all rules
		return ""
	}
	address := ""
	if caller.IP.IsValid() && (caller.By == "ip" || p.byAddress[caller.By]) {
		address = "ip:" + p.network(caller.IP).String()
	}
	switch {
	case address != "":
		return address
	case caller.By == "api_key" && !p.listed: // the client's name differs from process to process, the key does not
		return "key:" + r.Header.Get(cmp.Or(keyHeader, "X-API-Key"))
	}
	return "client:" + caller.Client // of a holder, who may have several keys, or of all that nobody knows
}

func (p *pins) network(ip netip.Addr) netip.Addr {
	bits := p.ipv4
	if ip.Is6() {
		bits = p.ipv6
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return ip
	}
	return network.Addr()
}

// pick is rendezvous hashing: each member draws a number from its name and the key, and the highest has it (Thaler and
// Ravishankar, 1998). Who comes takes keys from the others, who goes leaves its own, and no other key moves.
func pick(members []*member, key string) *member {
	var best *member
	var most uint64
	for _, m := range members {
		sum := sha256.Sum256([]byte(fmt.Sprintf("%d:%s%s", len(m.name), m.name, key)))
		if n := binary.BigEndian.Uint64(sum[:8]); best == nil || n > most || n == most && m.name < best.name {
			best, most = m, n
		}
	}
	return best
}
