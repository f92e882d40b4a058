package configfile

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/internal/check"
)

var identifyWords = []string{"principal", "api_key", "ip"}

var clientsShape = shape{
	keys: []key{
		{name: "identify", kind: kindWords, words: identifyWords},
		{name: "api_key_header", kind: kindText},
		{name: "api_keys_file", kind: kindText},
		{name: "trusted_proxies", kind: kindTexts},
		{name: "forwarded", kind: kindText},
		{name: "ipv6_prefix", kind: kindInteger, min: 48, max: 128},
		{name: "unknown", kind: kindWord, words: unknownWords},
		{name: "exempt_from", kind: kindTexts},
	},
}

// defaultKeyHeader is the middleware's.
const defaultKeyHeader = "X-API-Key"

var unknownWords = []string{"refuse", "shared", "exempt"}

// clients reads the section clients of a file in folder, and returns the file of API keys beside it. Keys that are missing stay
// zero, which is the library's default.
func clients(o object, folder string) (c shed.Clients, keysFile string) {
	c = shed.Clients{
		Identify:       o.words("identify"),
		APIKeyHeader:   o.header("api_key_header"),
		TrustedProxies: o.prefixes("trusted_proxies"),
		Forwarded:      o.forwarded("forwarded"),
		ExemptFrom:     o.prefixes("exempt_from"),
	}
	keysFile, c.APIKeys = o.apiKeys("api_keys_file", folder)
	if bits, ok := o.integer("ipv6_prefix"); ok {
		c.IPv6Prefix = int(bits)
	}
	if i, ok := o.word("unknown"); ok {
		c.Unknown = unknownWords[i]
	}
	// Believing the header of everybody lets any client choose its own address, and with it its own quota.
	if check.Everybody(c.TrustedProxies) {
		o.fields["trusted_proxies"].fail("trusts a quarter of all addresses or more, so that clients could forge their own",
			"list the addresses of your proxies")
	}
	if check.Everybody(c.ExemptFrom) {
		o.fields["exempt_from"].warn("frees a quarter of all addresses or more of the guard, so that anybody can flood the exempt routes",
			"list the networks that your probes come from")
	}
	if why := check.KeyHeader(c.APIKeyHeader); why != "" {
		o.fields["api_key_header"].fail(bare(c.APIKeyHeader)+" "+why, "use a header of its own, such as X-API-Key")
	}
	if why := check.AddressHeader(c.Forwarded); why != "" {
		o.fields["forwarded"].fail(bare(c.Forwarded)+" "+why, "use x_forwarded_for, forwarded, or the header that your proxy writes the address into")
	}
	if c.Forwarded != "" && strings.EqualFold(c.Forwarded, cmp.Or(c.APIKeyHeader, defaultKeyHeader)) {
		o.fields["forwarded"].fail(bare(c.Forwarded)+" is the header of API keys", "give each its own")
	}
	if o.has("forwarded") && !o.has("trusted_proxies") {
		o.fields["forwarded"].warn("is believed from nobody without trusted_proxies", "list the networks of your proxies under trusted_proxies, or remove it")
	}
	if o.has("identify") && !slices.Contains(c.Identify, "api_key") {
		for _, name := range []string{"api_key_header", "api_keys_file"} {
			if o.has(name) {
				o.fields[name].warn("does nothing, for identify does not list api_key", "add api_key to identify, or remove it")
			}
		}
	}
	return c, keysFile
}

// fieldName is a header's name: a token of RFC 9110, section 5.6.2.
var fieldName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$")

// header returns the header's name under a key, or "".
func (o object) header(name string) string {
	s := o.text(name)
	if s != "" && !fieldName.MatchString(s) {
		o.fields[name].fail(shown(s)+" cannot be the name of a header", "use letters, digits and dashes, such as X-API-Key")
		return ""
	}
	return s
}

// forwarded returns which forwarding header is believed. The two standard headers are lists with rules of their own, and have
// words, which their names stand for too; any other header is read as one plain address.
func (o object) forwarded(name string) string {
	s := o.header(name)
	if word := strings.ToLower(strings.ReplaceAll(s, "-", "_")); word == "x_forwarded_for" || word == "forwarded" {
		return word
	}
	return s
}

// prefixes returns the networks in the list under a key.
func (o object) prefixes(name string) []netip.Prefix {
	var all []netip.Prefix
	for _, item := range o.texts(name) {
		s, ok := item.text()
		if !ok {
			continue
		}
		p, ok := item.prefix(s)
		switch {
		case !ok:
		case slices.Contains(all, p):
			item.fail(p.String()+" is in the list twice", "keep one of them")
		default:
			all = append(all, p)
		}
	}
	return all
}

func (v value) prefix(s string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		mend := "write it like 10.0.0.0/8 or 2001:db8::/32"
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			mend = fmt.Sprintf("for this one address write %s/%d", a, a.BitLen())
		}
		v.fail(shown(s)+" is not a network", mend)
		return p, false
	}
	if p.Addr().Is4In6() {
		v.fail(shown(s)+" is an IPv4 network in IPv6 clothing and would match nothing", "write it as IPv4, like 10.0.0.0/8")
		return p, false
	}
	if p != p.Masked() {
		v.fail(fmt.Sprintf("%s has bits after the first %d", shown(s), p.Bits()), "write "+p.Masked().String())
		return p, false
	}
	return p, true
}
