package check

import "strings"

// Headers that something else is the meaning of. Host is not even among a request's headers in Go.
var (
	// hop are about the connection or the message, and proxies take them off or write them anew.
	hop = words("Connection Content-Length Expect Host Keep-Alive Proxy-Connection TE Trailer Transfer-Encoding Upgrade")
	// spoken are set by every client, and not by the person who uses it.
	spoken = words("Accept Accept-Charset Accept-Encoding Accept-Language Cache-Control Content-Encoding Content-Type Cookie Date " +
		"If-Match If-Modified-Since If-None-Match If-Range If-Unmodified-Since Origin Pragma Range Referer User-Agent Via")
	// forwarding say from where a request has come.
	forwarding = words("CF-Connecting-IP Forwarded True-Client-IP X-Client-IP X-Forwarded-For X-Forwarded-Host X-Forwarded-Port X-Forwarded-Proto X-Real-IP")
	// answered belong to the response itself, or say something that Spillway says.
	answered = words("Allow Cache-Control Content-Encoding Content-Range Content-Type Date ETag Last-Modified Location Pumpkin-Rev RateLimit RateLimit-Policy Retry-After " +
		"Server Set-Cookie Spillway-Shadow Vary WWW-Authenticate")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[strings.ToLower(name)] = true
	}
	return set
}

// KeyHeader returns why a request's header cannot carry an API key.
func KeyHeader(name string) string {
	switch name = strings.ToLower(name); {
	case hop[name]:
		return "is about the connection and carries no key"
	case spoken[name]:
		return "says something else about every request and carries no key"
	case forwarding[name]:
		return "says from where a request has come and carries no key"
	}
	return ""
}

// AddressHeader returns why a request's header cannot hold the address that a proxy has seen.
func AddressHeader(name string) string {
	switch name = strings.ToLower(name); {
	case hop[name]:
		return "is about the connection and holds no address"
	case spoken[name], name == "authorization", name == "x-forwarded-host", name == "x-forwarded-port", name == "x-forwarded-proto":
		return "says something else about every request and holds no address"
	}
	return ""
}

// CostHeader returns why a response's field cannot say what a request weighed: it is removed when it has been read.
func CostHeader(name string) string {
	switch name = strings.ToLower(name); {
	case hop[name]:
		return "is about the connection and says no cost"
	case answered[name]:
		return "says something else to the client, and would be taken away from it"
	}
	return ""
}

// HasScheme tells whether what stands in a request's header begins with the name of a scheme, which is no part of a key.
func HasScheme(name string) bool {
	return strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Proxy-Authorization")
}
