package pumpkin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// onlyHosts refuses requests for a name that is not ours. A page whose name was made to point at this machine (DNS
// rebinding) is of the same origin as far as the browser can tell, but it cannot help sending its own name as Host.
func (p *Pumpkin) onlyHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hostAllowed(r.Host, p.hosts) {
			next.ServeHTTP(w, r)
			return
		}
		leaveBody(w, r)
		refusal := refuse(WrongHost, "the admin endpoint is not called that; allow the name in pumpkin.admin.hosts, or ask by address")
		if p.guard.failed(time.Now()) == 0 { // counted and throttled with the wrong tokens
			p.auditStranger(r, "wrong_host", refusal)
		}
		writeProblem(w, refusal)
	})
}

// hostAllowed reports whether host, a Host field with or without a port, is localhost, an address, or one of names. An
// address cannot be rebound. No Host at all comes from no browser.
func hostAllowed(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	for _, name := range names {
		if strings.EqualFold(host, name) {
			return true
		}
	}
	return false
}
