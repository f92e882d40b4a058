package identity

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/shed"
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

// Resolver finds out who sent a request. Make one with New.
type Resolver struct {
	ways       []way
	keyHeader  string // canonical
	keyField   string // as configured
	trusted    prefixes
	forwarded  forwarding
	ipv6Bits   int
	shared     bool // nobody known: one name for all of them
	anonymous  bool // nobody known: and that is all right
	exemptFrom prefixes
}

// New makes a Resolver of clients. Principals tells whether the application has a word of its own on who asks; if clients
// does not say in which order to look, that comes first.
func New(clients shed.Clients, principals bool) (*Resolver, error) {
	r := &Resolver{ipv6Bits: clients.IPv6Prefix}
	if r.ipv6Bits == 0 {
		r.ipv6Bits = 64
	}
	if r.ipv6Bits < 48 || r.ipv6Bits > 128 {
		return nil, fmt.Errorf("clients.ipv6_prefix is %d; use 48 to 128, or leave it out for 64", clients.IPv6Prefix)
	}
	if err := r.setWays(clients.Identify, principals); err != nil {
		return nil, err
	}
	keyHeader, ok := headerName(clients.APIKeyHeader, DefaultAPIKeyHeader)
	if !ok {
		return nil, fmt.Errorf("clients.api_key_header %q is no header name; use letters, digits and dashes", clients.APIKeyHeader)
	}
	r.keyHeader, r.keyField = keyHeader, cmp.Or(clients.APIKeyHeader, DefaultAPIKeyHeader)
	r.forwarded = forwardingOf(clients.Forwarded)
	if r.forwarded.header, ok = headerName(r.forwarded.header, ""); !ok {
		return nil, fmt.Errorf("clients.forwarded %q is neither x_forwarded_for nor forwarded nor a header name", clients.Forwarded)
	}
	switch clients.Unknown {
	case "", "refuse":
	case "shared":
		r.shared = true
	case "exempt":
		r.anonymous = true
	default:
		return nil, fmt.Errorf("clients.unknown is %q; use refuse, shared or exempt", clients.Unknown)
	}
	var err error
	if r.trusted, err = compilePrefixes("trusted_proxies", clients.TrustedProxies); err != nil {
		return nil, err
	}
	r.exemptFrom, err = compilePrefixes("exempt_from", clients.ExemptFrom)
	return r, err
}

func (r *Resolver) setWays(names []string, principals bool) error {
	if len(names) == 0 {
		if principals {
			r.ways = append(r.ways, byPrincipal)
		}
		r.ways = append(r.ways, byAPIKey, byIP)
	}
	for _, name := range names {
		switch name {
		case "principal":
			if !principals {
				return errors.New("clients.identify lists principal, but the program has no Principal function; set one or drop the word")
			}
			r.ways = append(r.ways, byPrincipal)
		case "api_key":
			r.ways = append(r.ways, byAPIKey)
		case "ip":
			r.ways = append(r.ways, byIP)
		default:
			return fmt.Errorf("clients.identify lists %q; use principal, api_key and ip", name)
		}
	}
	return nil
}

// headerName brings a header's name into canonical form.
func headerName(name, absent string) (string, bool) {
	if name == "" {
		name = absent
	}
	for _, c := range name {
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", c) && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return "", false
		}
	}
	return http.CanonicalHeaderKey(name), name != ""
}

// Identify finds out who sent req, without changing it. The principal is the application's word on that, "" for nobody.
func (r *Resolver) Identify(req *http.Request, principal string) Identity {
	id := Identity{Peer: parseAddress(req.RemoteAddr)}
	addr := id.Peer
	if r.trusted.contain(addr) {
		addr = r.forwarded.client(req.Header[r.forwarded.header], addr, r.trusted)
	}
	id.IP = canonical(addr, r.ipv6Bits)
	for _, w := range r.ways {
		if id.Client = r.name(w, req, principal, id.IP); id.Client != "" {
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
func (r *Resolver) name(w way, req *http.Request, principal string, ip netip.Addr) string {
	switch w {
	case byPrincipal:
		switch {
		case principal == "":
			return ""
		case len(principal) > maxPrincipal || !printable(principal):
			return digestName("principal-digest:", principal)
		}
		return "principal:" + principal
	case byAPIKey:
		keys := req.Header[r.keyHeader]
		if len(keys) != 1 || keys[0] == "" || len(keys[0]) > maxKey || !printable(keys[0]) {
			return ""
		}
		return digestName("key:", keys[0])
	}
	if !ip.IsValid() {
		return ""
	}
	var buf [64]byte
	name := ip.AppendTo(append(buf[:0], "ip:"...))
	if ip.Is6() && r.ipv6Bits < ip.BitLen() {
		name = strconv.AppendInt(append(name, '/'), int64(r.ipv6Bits), 10)
	}
	return string(name)
}

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
