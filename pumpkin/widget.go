package pumpkin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	_ "embed" // for the widget
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// The widget's readable source is widget/pumpkin.js; what is served is made from it, for the size's sake. A test says when
// the two do not agree.
//
//go:generate go tool esbuild widget/pumpkin.js --minify --charset=utf8 --target=es2022 --log-level=warning --outfile=widget/pumpkin.min.js

//go:embed widget/pumpkin.min.js
var widgetScript []byte

// Widget returns the handler of pumpkin.js, the script of <pumpkin-banner> and window.pumpkin: one file that needs no
// other, no inline style and no inline script, below 2.5 KB when gzipped. [Pumpkin.Public] answers with it, too, where it is
// mounted at /pumpkin.js; this one is for a host that serves the script without holding a document.
//
// The script polls pumpkin.json beside itself, unless the attribute data-src of its <script> names another document.
func Widget() http.Handler { return http.HandlerFunc(serveWidget) }

// WidgetIntegrity is the value of the attribute integrity for the <script> of this very version (Subresource Integrity). A
// page that pins it shows no banner after an update of the server until the page is updated too, so pin it only where both
// are released together or the script comes from elsewhere.
func WidgetIntegrity() string { return widget().integrity }

// widget is the script with its header values, made when first asked for.
var widget = sync.OnceValue(func() *widgetFiles {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is a valid one
	w.Write(widgetScript)                                      // a bytes.Buffer takes everything
	w.Close()
	sum := sha512.Sum384(widgetScript)
	return &widgetFiles{
		plain:     newWidgetFile(widgetScript),
		gzip:      newWidgetFile(packed.Bytes()),
		integrity: "sha384-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
})

type widgetFiles struct {
	plain, gzip widgetFile
	integrity   string
}

type widgetFile struct {
	body         []byte
	etag, length []string
}

func newWidgetFile(body []byte) widgetFile {
	return widgetFile{body, []string{entityTag(body)}, []string{strconv.Itoa(len(body))}}
}

// Header values of the script. An old script goes on working with a new server, so it may be kept for an hour, and used
// while it is looked after.
var (
	headerScript      = []string{"text/javascript; charset=utf-8"}
	headerScriptCache = []string{"public, max-age=3600, stale-while-revalidate=86400, stale-if-error=604800"}
	headerVary        = []string{"Accept-Encoding"}
	headerGzip        = []string{"gzip"}
)

// isWidget reports whether a request to Public is for the script.
func isWidget(r *http.Request) bool {
	return r.URL != nil && strings.HasSuffix(r.URL.Path, "pumpkin.js")
}

func serveWidget(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if !reads(w, r, "script") {
		return
	}
	file := &widget().plain
	if acceptsGzip(r.Header["Accept-Encoding"]) {
		file = &widget().gzip
		header["Content-Encoding"] = headerGzip
	}
	header["Vary"] = headerVary
	header["Cache-Control"] = headerScriptCache
	header["Etag"] = file.etag
	if matchesTag(r.Header["If-None-Match"], file.etag[0]) {
		delete(header, "Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header["Content-Type"] = headerScript
	header["Content-Length"] = file.length
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		w.Write(file.body) // an error means that the client has gone
	}
}

// acceptsGzip reports whether the client names gzip with a weight above 0. Those who say "*" or nothing get the plain
// script, which everybody can read.
func acceptsGzip(accept []string) bool {
	for _, line := range accept {
		for coding := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(coding, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			q, weighed := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(weight, " ", "")), "q=")
			return !weighed || strings.Trim(q, "0.") != ""
		}
	}
	return false
}
