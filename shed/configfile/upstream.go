package configfile

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/shed"
)

// DefaultUpstream is the name under which Config.Upstreams holds where everything goes that no route sends elsewhere. No
// route can have it.
const DefaultUpstream = ""

// upstreams reads where the routes of a file send their requests. Program is what the program itself says; nil where it
// forwards nothing.
func upstreams(all []object, routes []shed.Route, program map[string]*url.URL) map[string]*url.URL {
	found := map[string]*url.URL{}
	if u := program[DefaultUpstream]; u != nil {
		found[DefaultUpstream] = u
	}
	for i, o := range all {
		s := o.text("upstream")
		switch {
		case s == "":
		case program == nil:
			o.fields["upstream"].fail("has no meaning in this program, which forwards nothing", "remove it")
		default:
			if u := o.upstream(s); u != nil && i < len(routes) {
				found[routes[i].Name] = u
			}
		}
	}
	if program == nil {
		return nil
	}
	return found
}

func (o object) upstream(s string) *url.URL {
	u, why := ParseUpstream(s)
	if why != "" {
		o.fields["upstream"].fail(shown(s)+" is not an upstream: "+why, "write it like http://127.0.0.1:9000")
		return nil
	}
	return u
}

// ParseUpstream reads the address of a service that requests are forwarded to: http or https, a host, and a path if all
// paths shall begin with one. Why is empty, or what is wrong.
func ParseUpstream(s string) (u *url.URL, why string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsAny(s, " \t"):
		return nil, "it is no URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "it has to begin with http:// or https://"
	case u.Hostname() == "":
		return nil, "there is no host in it"
	case strings.HasSuffix(u.Host, ":"): // as from a variable that is not set
		return nil, "there is a colon but no port after the host"
	case u.Port() != "" && !isPort(u.Port()):
		return nil, "ports go from 1 to 65535"
	case u.User != nil:
		return nil, "names and passwords do not belong in it"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, "there is a query or a fragment in it"
	}
	return u, ""
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}
