// Package identity answers the question: who sent this request?
//
// The answer is an [Identity]: the name of the client for rules per client and for fairness, and its address for rules per
// address. Names carry their kind in front, so that no client can pass for one of another kind:
//
//	principal:alice                  what the application's own authentication says
//	api_key:alice                    an API key that is listed, by the name in the list
//	key:5f4dcc3b5aa765d61d8327deb88  an API key where none are listed, as a keyed hash; the key itself is kept nowhere
//	ip:192.0.2.7                     an IPv4 address
//	ip:2001:db8:1:2::/64             the prefix of an IPv6 address: one holder has 2^64 addresses to choose from
//	unknown                          everybody who is not known, if the configuration lets them share a name
//
// # What is believed
//
// The peer's address is the only address that cannot be forged. A forwarding header is read only when the peer is one of the
// configured proxies, and then exactly the one header that is configured. It is read from the right, where the nearest
// proxy wrote, and only as far as the first address that is not a proxy: whatever stands left of that came from the client.
// An element that is no address ends the search without an answer, for what is left of it may be forged. Nobody's address
// is guessed, and Request.RemoteAddr is never changed.
//
// Where API keys are listed (shed.Clients.APIKeys) a key is compared with the digests of the list, and one that is not in it names
// nobody. Without a list a key is a label: whoever makes up keys makes up clients. The address is found in either case; rules per
// address hold under any rotation of keys.
//
// # Bounds
//
// Of a forwarding header at most 32 elements and 4 KiB are looked at, of an API key 256 bytes; longer ones are as good as
// absent. A Resolver is immutable and safe for concurrent use.
package identity
