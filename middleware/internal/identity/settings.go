package identity

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway/shed"
)

// New makes a Resolver of clients. Principals tells whether the application has a word of its own on who asks; if clients
// does not say in which order to look, that comes first. Shared tells that other processes use the same balances, and have to
// know clients by the same names.
func New(clients shed.Clients, principals, shared bool) (*Resolver, error) {
	r := &Resolver{ipv6Bits: clients.IPv6Prefix, names: namesFor(clients.Secret, shared), peers: peers{seed: maphash.MakeSeed()}}
	if r.ipv6Bits == 0 {
		r.ipv6Bits = 64
	}
	if r.ipv6Bits < 48 || r.ipv6Bits > 128 {
		return nil, fmt.Errorf("clients.ipv6_prefix is %d; use 48 to 128, or leave it out for 64", clients.IPv6Prefix)
	}
	if err := r.setWays(clients.Identify, principals); err != nil {
		return nil, err
	}
	r.keyField = cmp.Or(clients.APIKeyHeader, DefaultAPIKeyHeader)
	var ok bool
	if r.keyHeader, ok = headerName(r.keyField); !ok {
		return nil, fmt.Errorf("clients.api_key_header %q is no header name; use letters, digits and dashes", r.keyField)
	}
	var err error
	if r.keys, err = newKeyring(clients.APIKeys); err != nil {
		return nil, err
	}
	r.forwarded = forwardingOf(clients.Forwarded)
	if r.forwarded.header, ok = headerName(r.forwarded.header); !ok {
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

// headerName brings a header's name into canonical form, and reports whether it is one.
func headerName(name string) (string, bool) {
	for _, c := range name {
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", c) && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return "", false
		}
	}
	return http.CanonicalHeaderKey(name), true
}
