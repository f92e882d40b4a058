package pumpkin

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// problem is an RFC 9457 document with the decision's word.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Reason Reason `json:"reason"`
}

// writeProblem answers with r.
func writeProblem(w http.ResponseWriter, r *Refusal) {
	status := r.Reason.status()
	writeJSON(w, status, "application/problem+json", problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: r.Detail, Reason: r.Reason,
	})
}

// writeJSON answers with v, which must be of a type that can always be encoded.
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "pumpkin: answer cannot be encoded", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

// leaveBody says that nobody will read the request's body. On HTTP/1.x net/http would drain it before the answer leaves, at
// whatever pace the client sends, and keep the connection until then.
func leaveBody(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		w.Header()["Connection"] = []string{"close"}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a writer that cannot has no connection to keep
	}
}

// wholeSeconds is d for Retry-After: rounded up, at least 1.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}
