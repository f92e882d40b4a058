package check

import (
	"slices"
	"strings"
)

// common are the methods that nearly all patterns have, and registered the others of IANA's registry of HTTP methods.
var (
	common     = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}
	registered = []string{
		"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR",
		"MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PROPFIND", "PROPPATCH", "PURGE", "QUERY", "REBIND", "REPORT", "SEARCH",
		"UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
	}
)

// Pattern returns why no request ever matches a pattern of net/http, as far as its text shows. What net/http itself refuses is not
// looked for.
func Pattern(pattern string) (why string) {
	method, rest, found := strings.Cut(pattern, " ")
	if !found {
		method, rest = "", pattern
	}
	place := strings.TrimLeft(rest, " \t")
	host, path, _ := strings.Cut(place, "/")
	path = "/" + path
	switch {
	case found && method != strings.ToUpper(method):
		return "methods are written in capitals"
	case misspelt(method) != "":
		return "there is no method " + method + ", did you mean " + misspelt(method) + "?"
	case strings.Contains(place, "://"):
		return "requests are matched without their scheme"
	case strings.Contains(host, ":") && !strings.HasSuffix(host, "]") && method != "CONNECT":
		return "requests are matched without the port of their host"
	case strings.ContainsAny(host, " \t"):
		return "there is a space in it"
	case strings.ContainsAny(host, "*^$()|\\"):
		return "hosts are matched to the letter, and no host has such signs"
	case strings.ContainsAny(path, "?"):
		return "requests are matched without their query"
	case strings.Contains(path, "#"):
		return "clients do not send what is behind a #"
	case strings.HasSuffix(pattern, " "):
		return "it ends with a space"
	}
	return segments(path)
}

// segments returns why no request matches a path because of one of its segments.
func segments(path string) string {
	if path == "/" {
		return ""
	}
	all := strings.Split(path[1:], "/")
	for i, s := range all {
		switch {
		case s == "*" || s == "**" || strings.Contains(s, ".*"):
			return "a segment " + s + " would be matched to the letter, {name} and {name...} stand for any"
		case strings.HasPrefix(s, ":") && len(s) > 1:
			return "a segment " + s + " would be matched to the letter, {" + s[1:] + "} stands for any"
		case s == "." || s == "..", s == "" && i < len(all)-1:
			return "paths are matched without //, /./ and /../"
		}
	}
	return ""
}

// misspelt returns the method that was meant by one that does not exist and is a slip away from a common one.
func misspelt(method string) string {
	if method == "" || Method(method) {
		return ""
	}
	for _, m := range common {
		if slip(method, m) {
			return m
		}
	}
	return ""
}

// Method tells whether a method is one of those that are registered. Others can be sent as well, and hardly ever are.
func Method(method string) bool {
	return slices.Contains(common, method) || slices.Contains(registered, method)
}

// slip tells whether b comes of a by one letter too many, too few or wrong, or by two that changed places. Words that are a
// letter longer at the end may be meant (GETS, PUTX), and are slips all the same.
func slip(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch len(a) - len(b) {
	case 0:
		return a == "" || a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
	case 1:
		return a[1:] == b
	case -1:
		return a == b[1:]
	}
	return false
}

// Upper returns the host of a pattern, if it has capitals: clients send hosts in small letters.
func Upper(pattern string) (host string, yes bool) {
	_, rest, found := strings.Cut(pattern, " ")
	if !found {
		rest = pattern
	}
	host, _, _ = strings.Cut(strings.TrimLeft(rest, " \t"), "/")
	return host, host != strings.ToLower(host)
}
