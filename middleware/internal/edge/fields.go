package edge

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/limits"
)

// The two fields of draft-ietf-httpapi-ratelimit-headers, in the wire format it has since its version 08: lists of quoted
// policy names with parameters, as RFC 9651 spells them.
const (
	policyField = "Ratelimit-Policy" // RateLimit-Policy in net/http's spelling
	stateField  = "Ratelimit"
)

// maxInteger is the largest integer that a structured field can hold.
const maxInteger = 999_999_999_999_999

// fields writes what rules have to say. RateLimit-Policy is the same from response to response, so its lines are kept.
type fields struct {
	policies ready[string]
}

// set adds both fields for all verdicts of a decision. Their values are kept in place, which belongs to the response from
// then on. Lines that a limiter further out has set stay; a policy that is in them already is not listed twice.
func (f *fields) set(header http.Header, place *[2]string, verdicts []limits.Verdict, units map[string]string, refused bool) {
	var policyBuf, stateBuf [192]byte
	policies, states := policyBuf[:0], stateBuf[:0]
	before := header[policyField]
	for i := range verdicts {
		v := &verdicts[i]
		if listed(before, v.Policy.Name()) {
			continue
		}
		policies = appendPolicy(policies, v.Policy, units)
		states = appendState(states, v, refused)
	}
	if len(policies) == 0 {
		return
	}
	line, ok := f.policies.find(policies)
	if !ok {
		line = string(policies)
		f.policies.keep(line, line)
	}
	place[0], place[1] = line, string(states)
	if before == nil {
		header[policyField], header[stateField] = place[:1:1], place[1:]
		return
	}
	header[policyField] = append(before, place[0])
	header[stateField] = append(header[stateField], place[1])
}

// listed reports whether one of the lines names the policy already.
func listed(lines []string, name string) bool {
	if len(lines) == 0 {
		return false
	}
	member := string(appendString(nil, name)) + ";"
	for _, line := range lines {
		if strings.HasPrefix(line, member) || strings.Contains(line, ", "+member) {
			return true
		}
	}
	return false
}

// appendPolicy adds what a rule allows: its quota, what that counts if not requests, and the window in which that much comes
// back.
func appendPolicy(b []byte, p *limits.Policy, units map[string]string) []byte {
	b = appendMember(b, p.Name(), ";q=", p.Quota())
	if unit := units[p.Name()]; unit != "" {
		b = appendString(append(b, ";qu="...), unit)
	}
	if w := ceilSeconds(p.Window()); w > 0 {
		b = appendInteger(append(b, ";w="...), w)
	}
	return b
}

// appendState adds what is left and the seconds until that changes: of a rule that refuses, until the same request would
// fit; otherwise until the quota next grows. Next to a refusal, rules that did not refuse name no time, for the client
// shall wait for those that did.
func appendState(b []byte, v *limits.Verdict, refused bool) []byte {
	b = appendMember(b, v.Policy.Name(), ";r=", v.Remaining)
	wait := v.NextAfter
	if refused {
		wait = v.RetryAfter
	}
	if wait > 0 {
		b = appendInteger(append(b, ";t="...), ceilSeconds(wait))
	}
	return b
}

func appendMember(b []byte, name, parameter string, value int64) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	return appendInteger(append(appendString(b, name), parameter...), value)
}

// appendInteger adds a structured field integer, not negative and at most 15 digits.
func appendInteger(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(max(n, 0), maxInteger), 10)
}

// appendString adds a structured field string. Names of policies are printable ASCII; should one not be, it is mended
// rather than sent, for one bad byte would make the whole field unreadable.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '?')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
