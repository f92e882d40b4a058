package middleware

import (
	"encoding/json"
	"net/http"

	"github.com/spillway-go/spillway/shed"
)

// Livez returns a handler that answers 200 as long as the process can answer at all. It asks neither load nor
// dependencies: restarting a busy process makes nothing better. Give it an exempt route, or a listener of its own.
func Livez() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allowsRead(w, r) {
			reply(w, http.StatusOK, "ok\n")
		}
	})
}

// Readyz returns a handler that answers 200 until draining reports true, and 503 from then on: this instance is going away
// and shall get no new work. Nil means never. Shedding is no reason to be unready: it is how an instance stays useful, and
// taking a busy one out of the pool only moves its load to the others.
func Readyz(draining func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !allowsRead(w, r):
		case draining != nil && draining():
			reply(w, http.StatusServiceUnavailable, "draining\n")
		default:
			reply(w, http.StatusOK, "ok\n")
		}
	})
}

// DebugSection is one more part of the debug view: a name, and what to show under it, read anew for each view. It must be
// marshalable to JSON.
type DebugSection struct {
	Name string
	Read func() any
}

// DebugHandler serves the state of s as JSON under "shed", and each section beside it under its name; mount it as
// GET /debug/spillway. It shows no secret and no client's name (those who wait most stand there as hashes), but how close to
// its limits the service is: put it on a listener that only operators reach.
func DebugHandler(s *shed.Shedder, sections ...DebugSection) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowsRead(w, r) {
			return
		}
		view := map[string]any{"shed": s.Status()}
		for _, section := range sections {
			view[section.Name] = section.Read()
		}
		text, err := json.MarshalIndent(view, "", "  ")
		if err != nil {
			reply(w, http.StatusInternalServerError, "middleware: the debug view cannot be written as JSON: "+err.Error()+"\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		reply(w, http.StatusOK, string(text)+"\n")
	})
}

// allowsRead answers whatever is neither GET nor HEAD.
func allowsRead(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	reply(w, http.StatusMethodNotAllowed, "only GET and HEAD are allowed here\n")
	return false
}

func reply(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // nobody can be told if the client is gone
}
