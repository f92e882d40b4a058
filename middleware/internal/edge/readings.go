package edge

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

// A path can be read in two ways. Go's own muxes take it as it was sent: %2F is no slash, %2e%2e no step back, and what follows a
// semicolon belongs to the name. Others decode it first and then take the steps (nginx, most frameworks), drop parameters of segments
// (Tomcat), or take a backslash for a slash (IIS). What is behind decides which of them comes true, and nobody has told us.

// twofold reports whether the two readings of a request's path may differ.
func twofold(r *http.Request) bool {
	return (r.URL.RawPath != "" || strings.ContainsAny(r.URL.Path, `\;`)) && r.Method != http.MethodConnect
}

// decoded returns the path as those read it who decode it first, and whether that took steps out of it: "." and "..", or slashes that
// follow one another.
func decoded(u *url.URL) (p string, stepped bool) {
	segments := strings.Split(strings.ReplaceAll(u.Path, `\`, "/"), "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	whole := "/" + strings.TrimPrefix(strings.Join(segments, "/"), "/")
	p = path.Clean(whole)
	if strings.HasSuffix(whole, "/") && p != "/" {
		p += "/"
	}
	return p, p != whole
}

// among returns the route of a request whose path can be read in two ways, one being the route of the path as it was sent. Steps that
// are only seen once the path is decoded have no honest use, so then the decoded path decides. Otherwise the reading does that hits a
// route, and of two the one whose pattern says more of the path. Exempt is only what is exempt in both readings, and has no such steps.
func (t *routes) among(sent *route, r *http.Request) *route {
	p, stepped := decoded(r.URL)
	other := t.match(&http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: p}})
	switch {
	case stepped && other.exempt:
		return unmatched
	case stepped:
		return other
	case sent.exempt && other.exempt:
		return sent
	case sent.exempt, !other.exempt && other.says > sent.says:
		return other
	}
	return sent
}
