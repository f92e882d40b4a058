package identity

import (
	"net/http"
	"net/netip"
	"strconv"
)

// Unknown is the name that clients share who are not known, where the configuration says so. No known client can have it:
// their names have a kind in front.
const Unknown = "unknown"

// DefaultAPIKeyHeader is the header that carries API keys if the configuration names none.
const DefaultAPIKeyHeader = "X-API-Key"

// Identity is who sent a request.
type Identity struct {
	// Client is the client's name; empty if nobody is known.
	Client string
	// Plan is the client's plan, as far as the list of API keys knows it.
	Plan string
	// By is the way in which the client is known, as the configuration spells it; empty if nobody is known.
	By string
	// Anonymous tells that nobody is known and that the configuration takes no offence.
	Anonymous bool
	// IP is the client's address, of IPv6 the prefix only; the zero Addr if it is not known. It is filled in whatever
	// the client was named by.
	IP netip.Addr
	// Peer is the address at the other end of the connection; the zero Addr for unix sockets.
	Peer netip.Addr
}

// way is one way to name a client.
type way uint8

const (
	byPrincipal way = iota
	byAPIKey
	byIP
)

// words are the ways as the configuration spells them.
var words = [...]string{"principal", "api_key", "ip"}

// String returns the way as the configuration spells it.
func (w way) String() string { return words[w] }

// Resolver finds out who sent a request. Make one with New.
type Resolver struct {
	ways       []way
	keyHeader  string   // canonical
	keyField   string   // as configured
	keys       *keyring // nil where any key is taken for a label
	names      *names
	peers      peers
	trusted    prefixes
	forwarded  forwarding
	ipv6Bits   int
	shared     bool // nobody known: one name for all of them
	anonymous  bool // nobody known: and that is all right
	exemptFrom prefixes
}

// Identify finds out who sent req, without changing it. The principal is the application's word on that, "" for nobody.
func (r *Resolver) Identify(req *http.Request, principal string) Identity {
	p := r.peer(req.RemoteAddr)
	id := Identity{Peer: p.addr, IP: p.ip}
	if p.trusted {
		id.IP = canonical(r.forwarded.client(req.Header[r.forwarded.header], p.addr, r.trusted), r.ipv6Bits)
	}
	for _, w := range r.ways {
		if id.Client, id.Plan = r.name(w, req, principal, id.IP, p); id.Client != "" {
			id.By = w.String()
			return id
		}
	}
	if r.shared {
		id.Client = Unknown
	}
	id.Anonymous = r.anonymous
	return id
}

// name names the client in one way, or says "" where that way does not apply.
func (r *Resolver) name(w way, req *http.Request, principal string, ip netip.Addr, p *peer) (name, plan string) {
	switch w {
	case byPrincipal:
		switch {
		case principal == "":
			return "", ""
		case len(principal) > maxPrincipal || !printable(principal):
			return r.names.digest("principal-digest:", principal), ""
		}
		return "principal:" + principal, ""
	case byAPIKey:
		keys := req.Header[r.keyHeader]
		if len(keys) != 1 || keys[0] == "" || len(keys[0]) > maxKey || !printable(keys[0]) {
			return "", ""
		}
		if r.keys != nil {
			return r.keys.holder(keys[0])
		}
		return r.names.digest("key:", keys[0]), ""
	}
	if !p.trusted {
		return p.name, ""
	}
	return r.nameOf(ip), ""
}

// nameOf names the client of an address; "" if it is none.
func (r *Resolver) nameOf(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	var buf [64]byte
	text := ip.AppendTo(append(buf[:0], "ip:"...))
	if ip.Is6() && r.ipv6Bits < ip.BitLen() {
		text = strconv.AppendInt(append(text, '/'), int64(r.ipv6Bits), 10)
	}
	return string(text)
}

// Labels reports whether keys that nobody has verified name clients.
func (r *Resolver) Labels() bool { return r.keys == nil && r.TakesAPIKeys() != "" }

// TakesAPIKeys returns the header by which clients can say who they are, as the configuration spells it, or "" where API
// keys name nobody.
func (r *Resolver) TakesAPIKeys() string {
	for _, w := range r.ways {
		if w == byAPIKey {
			return r.keyField
		}
	}
	return ""
}

// Exempts reports whether the guard of exempt routes is open to peer.
func (r *Resolver) Exempts(peer netip.Addr) bool { return r.exemptFrom.contain(peer) }
