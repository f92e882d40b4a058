package edge

import (
	"net/http"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// shadowField tells what limits and gates that only watch would have done: a list of structured field strings, the name of each
// with the reason as a parameter.
const shadowField = "Spillway-Shadow"

// showShadows adds the limits that would have refused. Who would have let the request pass is silent.
func showShadows(header http.Header, shadows []limits.Verdict) {
	var buf [128]byte
	b := buf[:0]
	for i := range shadows {
		v := &shadows[i]
		if v.Reason == limits.Allowed {
			continue
		}
		b = appendShadow(b, v.Policy.Name(), v.Reason.String())
		if v.RetryAfter > 0 {
			b = appendInteger(append(b, ";t="...), ceilSeconds(v.RetryAfter))
		}
	}
	if len(b) > 0 {
		header[shadowField] = append(header[shadowField], string(b))
	}
}

// appendShadow adds one member.
func appendShadow(b []byte, name, reason string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	return append(append(appendString(b, name), ";reason="...), reason...) // a reason is a token as it stands
}

// showShadowGate adds what would have refused a shadow and is no limit.
func showShadowGate(header http.Header, reason shed.Reason) {
	switch reason {
	case "", shed.OverLimit, shed.CostTooLarge, shed.InFlight: // nothing, or a limit that showShadows has named
		return
	}
	header[shadowField] = append(header[shadowField], string(appendShadow(nil, "gate", string(reason))))
}
