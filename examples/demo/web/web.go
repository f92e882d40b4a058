// Package web holds the demo's live page: what it is made of, and under which headers it is served. The page brings its
// own small script for the charts, loads nothing from the network, and runs under a policy that would not let it.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
)

//go:embed assets
var files embed.FS

// Policy is the Content-Security-Policy of the page: own files only, no inline script or style, no frames, no forms.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types are the media types of the assets; whatever the machine's own tables say, these are what is sent.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is one file, ready to be sent.
type asset struct {
	body, media, tag string
}

// Icon is where browsers look for an icon when no page tells them.
const Icon = "/favicon.ico"

// Paths lists what Handler serves: the page at "/", its files under /assets/, and the icon where browsers look for it.
func Paths() []string {
	var paths []string
	for p := range assets() {
		paths = append(paths, p)
	}
	return paths
}

// Handler serves the page and its files.
func Handler() http.Handler {
	all := assets()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := all[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.media)
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", a.tag)
		if r.Header.Get("If-None-Match") == a.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Length", fmt.Sprint(len(a.body)))
		fmt.Fprint(w, a.body)
	})
}

// assets reads the embedded files, by the path they are served at.
func assets() map[string]asset {
	all := make(map[string]asset)
	// The files are part of the program: reading them cannot fail.
	fs.WalkDir(files, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		sum := sha256.Sum256(body)
		all["/"+name] = asset{
			body:  string(body),
			media: types[path.Ext(name)],
			tag:   `"` + base64.RawURLEncoding.EncodeToString(sum[:9]) + `"`,
		}
		return err
	})
	all["/"] = all["/assets/index.html"]
	all[Icon] = all["/assets/icon.svg"]
	delete(all, "/assets/index.html")
	return all
}
