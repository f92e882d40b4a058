package pumpkin

import (
	"embed"
	"net/http"
)

// pageFiles is the page for the person on call: a document, its style, its script and its picture, each a file of its own,
// so that the strictest policy can forbid everything inline.
//
//go:embed page/index.html page/page.css page/page.js page/page.svg
var pageFiles embed.FS

// pagePolicy lets the page load its own files and talk to its own origin, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// page serves the page for the person on call, to everybody who reaches the listener: it holds nothing but code, and asks
// for a token. All else goes on to next.
func (p *Pumpkin) page(next http.Handler) http.Handler {
	type file struct{ name, contentType string }
	files := map[string]file{
		"/":         {"page/index.html", "text/html; charset=utf-8"},
		"/page.css": {"page/page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page/page.js", "text/javascript; charset=utf-8"},
		"/page.svg": {"page/page.svg", "image/svg+xml"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.URL.Path]
		if !ok || !isRead(r) {
			next.ServeHTTP(w, r)
			return
		}
		body, err := pageFiles.ReadFile(f.name)
		if err != nil {
			http.Error(w, "pumpkin: the page is missing", http.StatusInternalServerError) // the compiler has put it there
			return
		}
		leaveBody(w, r)
		h := w.Header()
		h.Set("Content-Type", f.contentType)
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		_, _ = w.Write(body) // net/http leaves it out for HEAD; an error means that the client has gone
	})
}
