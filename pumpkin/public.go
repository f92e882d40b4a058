package pumpkin

import (
	"net/http"
	"strconv"
)

// Public returns the handler of the document, to be mounted at /pumpkin.json. It answers GET and HEAD with 200 or 304,
// OPTIONS with 204 and everything else with 405, from bytes and header values made beforehand: no lock, no allocation. It
// needs nothing else to work, so it should be neither limited nor shed. Mounted at /pumpkin.js as well, it answers there
// with the script of [Widget].
func (p *Pumpkin) Public() http.Handler { return publicHandler{p} }

type publicHandler struct{ p *Pumpkin }

// Header values, in the form net/http keeps them. They are shared by all responses and never changed.
var (
	headerJSON    = []string{"application/json; charset=utf-8"}
	headerAny     = []string{"*"}
	headerExpose  = []string{"ETag, Date, Age, Retry-After"}
	headerCORP    = []string{"cross-origin"}
	headerNosniff = []string{"nosniff"}
	headerAllow   = []string{"GET, HEAD, OPTIONS"}
	headerDay     = []string{"86400"}
)

// ServeHTTP writes header keys in their canonical form directly, which is what http.Header.Set would do with an allocation.
func (h publicHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isWidget(r) {
		serveWidget(w, r)
		return
	}
	p, header := h.p, w.Header()
	header["Access-Control-Expose-Headers"] = headerExpose
	if !reads(w, r, "document") {
		return
	}
	s := p.current.Load()
	header["Cache-Control"] = s.cacheControl
	header["Cdn-Cache-Control"] = s.cdnCacheControl
	header["Etag"] = s.etag
	if matchesTag(r.Header["If-None-Match"], s.etag[0]) {
		p.notModified.Add(1)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	p.polls.Add(1)
	header["Content-Type"] = headerJSON
	header["Content-Length"] = s.length
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		w.Write(s.board.body) // an error means that the client has gone
	}
}

// reads lets pages of any origin read what w answers, and reports whether r is a GET or HEAD. Another method it answers itself;
// what says what there is to read.
func reads(w http.ResponseWriter, r *http.Request, what string) bool {
	header := w.Header()
	if r.ContentLength != 0 {
		leaveBody(w, r)
	}
	header["Access-Control-Allow-Origin"] = headerAny
	header["Cross-Origin-Resource-Policy"] = headerCORP
	header["X-Content-Type-Options"] = headerNosniff
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodOptions:
		header["Allow"] = headerAllow
		header["Access-Control-Allow-Methods"] = headerAllow
		header["Access-Control-Allow-Headers"] = headerAny
		header["Access-Control-Max-Age"] = headerDay
		w.WriteHeader(http.StatusNoContent)
	default:
		header["Allow"] = headerAllow
		writeProblem(w, refuse(MethodNotAllowed, "the %s is read with GET or HEAD", what))
	}
	return false
}

// cacheHeaders returns Cache-Control and CDN-Cache-Control. max-age stays below 0.8 of the poll interval, the least that a
// client waits between polls: else it would be answered by its own cache. stale-while-revalidate is for CDNs only, because
// a browser would show every banner one poll late.
func cacheHeaders(pollSeconds int) (cacheControl, cdn []string) {
	age := strconv.Itoa(min(5, (8*pollSeconds-1)/10))
	return []string{"public, max-age=" + age + ", stale-if-error=86400"},
		[]string{"max-age=" + age + ", stale-while-revalidate=30, stale-if-error=86400"}
}
