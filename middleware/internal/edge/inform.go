package edge

import (
	"net/http"
	"slices"
)

// ownFields are those that are set before the handler runs, whatever it answers. What only refusals have is not among them.
var ownFields = [...]string{
	policyField, stateField, shadowField, "Pumpkin-Rev", "Access-Control-Expose-Headers",
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
}

// informs notes what an informational response (100, 103) takes along. httputil.ReverseProxy empties all fields after one, ours too,
// and the final answer would say nothing about quotas.
func (w *recorder) informs() {
	rare, header := w.rarely(), w.Header()
	if rare.told == nil {
		rare.told = make(http.Header)
	}
	for _, field := range ownFields {
		if lines := header[field]; len(lines) > 0 {
			rare.told[field] = lines
		}
	}
}

// tellAgain puts back what is not there any more, in front of what the handler has to say itself.
func (w *recorder) tellAgain() {
	for field, lines := range w.rare.told {
		if header := w.Header(); !slices.Contains(header[field], lines[0]) {
			header[field] = slices.Concat(lines, header[field])
		}
	}
}
