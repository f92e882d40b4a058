package edge

import (
	"net/http"
	"strconv"
	"strings"
	"unsafe"

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

// fields writes what rules have to say. RateLimit-Policy is the same from response to response, so its members are kept for each
// policy, and so is what every member of RateLimit begins with.
type fields struct {
	members ready[*limits.Policy, *member] // policies that a reload has replaced are forgotten when there are too many
	lists   ready[string, string]
}

// member is what stays the same about one policy.
type member struct {
	policy string // the whole member of RateLimit-Policy
	state  string // the beginning of that of RateLimit, up to the value of r
	recent spellings
}

// of returns the member of p.
func (f *fields) of(p *limits.Policy, units map[string]string) *member {
	if m := f.members.all()[p]; m != nil {
		return m
	}
	return f.members.keep(p, &member{
		policy: string(appendPolicy(nil, p, units)), state: string(append(appendString(nil, p.Name()), ";r="...)),
	})
}

// room is where the text of a usual member of RateLimit fits. It belongs to one response.
type room [48]byte

// line returns the member of RateLimit that says what v does. If there is room the text may be in it from then on.
func (m *member) line(room *room, v *limits.Verdict, refused bool) string {
	remaining, seconds := stateOf(v, refused)
	few := remaining < int64(len(m.recent)) // those that come back are refused with the same numbers, and small buckets have few of them
	if few {
		if text, ok := m.recent.find(remaining, seconds); ok {
			return text
		}
	}
	if room != nil && !few {
		text := appendState(append(room[:0], m.state...), remaining, seconds)
		return unsafe.String(unsafe.SliceData(text), len(text)) // nobody else writes there, and this is done once
	}
	var buf [96]byte
	text := string(appendState(append(buf[:0], m.state...), remaining, seconds))
	if few {
		m.recent.keep(remaining, seconds, text)
	}
	return text
}

// set adds both fields for all verdicts of a decision. Their values are kept in place and room, which belong to the response from
// then on; room may be nil. Lines that a limiter further out has set stay; a policy that is in them already is not listed twice.
func (f *fields) set(header http.Header, place *[2]string, room *room, verdicts []limits.Verdict, units map[string]string, refused bool) {
	before := header[policyField]
	if len(verdicts) == 1 && before == nil {
		m := f.of(verdicts[0].Policy, units)
		place[0], place[1] = m.policy, m.line(room, &verdicts[0], refused)
	} else if !f.list(place, before, verdicts, units, refused) {
		return
	}
	if before == nil {
		header[policyField], header[stateField] = place[:1:1], place[1:]
		return
	}
	header[policyField] = append(before, place[0])
	header[stateField] = append(header[stateField], place[1])
}

// list makes the lines of several verdicts, and reports whether there is anything to say.
func (f *fields) list(place *[2]string, before []string, verdicts []limits.Verdict, units map[string]string, refused bool) bool {
	var policyBuf, stateBuf [192]byte
	policies, states := policyBuf[:0], stateBuf[:0]
	for i := range verdicts {
		v := &verdicts[i]
		if listed(before, v.Policy.Name()) {
			continue
		}
		if len(policies) > 0 {
			policies, states = append(policies, ", "...), append(states, ", "...)
		}
		m := f.of(v.Policy, units)
		policies = append(policies, m.policy...)
		remaining, seconds := stateOf(v, refused)
		states = appendState(append(states, m.state...), remaining, seconds)
	}
	if len(policies) == 0 {
		return false
	}
	line, ok := f.lists.all()[string(policies)]
	if !ok {
		line = string(policies)
		f.lists.keep(line, line)
	}
	place[0], place[1] = line, string(states)
	return true
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
	b = appendInteger(append(appendString(b, p.Name()), ";q="...), p.Quota())
	if unit := units[p.Name()]; unit != "" {
		b = appendString(append(b, ";qu="...), unit)
	}
	if w := ceilSeconds(p.Window()); w > 0 {
		b = appendInteger(append(b, ";w="...), w)
	}
	return b
}

// stateOf returns what is left and the seconds until that changes: of a rule that refuses, until the same request would
// fit; otherwise until the quota next grows. Next to a refusal, rules that did not refuse name no time, for the client
// shall wait for those that did.
func stateOf(v *limits.Verdict, refused bool) (remaining, seconds int64) {
	wait := v.NextAfter
	if refused {
		wait = v.RetryAfter
	}
	return v.Remaining, ceilSeconds(wait)
}

// appendState adds the values of a member of RateLimit; no seconds are no word on them.
func appendState(b []byte, remaining, seconds int64) []byte {
	b = appendInteger(b, remaining)
	if seconds > 0 {
		b = appendInteger(append(b, ";t="...), seconds)
	}
	return b
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
