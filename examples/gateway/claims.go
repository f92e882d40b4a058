package main

import (
	"net/http"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/shed"
)

// claims are fields, beside X-Forwarded-For, that say to some service who asks, or for what: proxies and networks set them. From a client
// they would be a claim: an address that nobody has seen, a path that nobody has decided about, or a proxy for the service's own calls
// (CGI takes Proxy for HTTP_PROXY).
var claims = []string{
	"forwarded", "forwarded-for", "x-forwarded", "x-forwarded-for", "x-real-ip", "true-client-ip", "client-ip", "x-client-ip",
	"x-cluster-client-ip", "x-original-forwarded-for", "x-originating-ip", "x-remote-ip", "x-remote-addr", "remote-addr", "x-proxyuser-ip",
	"proxy-client-ip", "wl-proxy-client-ip", "cf-connecting-ip", "cf-connecting-ipv6", "cf-pseudo-ipv4", "fastly-client-ip", "fly-client-ip",
	"x-azure-clientip", "x-azure-socketip", "x-appengine-user-ip", "x-envoy-external-address", "x-nf-client-connection-ip",
	"x-original-url", "x-rewrite-url", "proxy",
}

// dropClaims removes from a request that goes out what was said about who asks, and what peers say to each other, but for the one
// field in which a trusted proxy is believed. What else a trusted proxy has put into X-Forwarded-Port and its kind goes on.
//
// Many services read X_Forwarded_For as X-Forwarded-For: CGI and WSGI know one spelling for both. So any sign that is no letter
// or digit counts as a hyphen here, and the believed field is the one that is spelled as it should be.
func dropClaims(h http.Header, clients shed.Clients, trusted bool) {
	believed := believed(clients)
	for field := range h {
		name := asName(field)
		odd := name != strings.ToLower(field)
		claim := slices.Contains(claims, name) || name == asName(believed) || strings.HasPrefix(name, "spillway-peer") ||
			strings.HasPrefix(name, "x-forwarded-") && (!trusted || odd)
		if claim && (!trusted || field != believed) {
			delete(h, field)
		}
	}
}

// believed is the one field in which a trusted proxy says who asks.
func believed(clients shed.Clients) string {
	switch name := strings.ToLower(clients.Forwarded); name {
	case "", "x_forwarded_for":
		return "X-Forwarded-For"
	default:
		return http.CanonicalHeaderKey(name)
	}
}

// asName is the spelling that fields are compared in.
func asName(field string) string { return strings.Map(asHyphen, field) }

func asHyphen(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
		return r
	}
	return '-'
}

// printable reports whether s is made of printable ASCII characters only.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// upgrades leaves only such requests for another protocol as begin a conversation. After h2c (and TLS) further requests would pass
// on the same connection, and nobody would count them; a client that asks for it is served as if it had not (RFC 9110, 7.8).
func upgrades(h http.Header) {
	for _, protocols := range h["Upgrade"] {
		for protocol := range strings.SplitSeq(protocols, ",") {
			name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(protocol)), "/")
			if name == "h2c" || name == "h2" || name == "http" || name == "tls" {
				delete(h, "Upgrade")
				delete(h, "Connection")
				delete(h, "Http2-Settings")
				return
			}
		}
	}
}
