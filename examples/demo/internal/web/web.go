// Package web holds what the demo adds to middleware.Dashboard, and serves both as its live page: the buttons, the pumpkin's
// banner, and commands to copy. It loads nothing from the network, and runs under a policy that would not let it.
package web

import (
	"embed"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

//go:embed assets parts
var files embed.FS

// Icon is where browsers look for an icon when no page tells them, and Stats where the page asks for its numbers.
const (
	Icon  = "/favicon.ico"
	Stats = "/demo/stats"
)

// own are the demo's own files, by the path they are served at.
var own = map[string]string{
	"/assets/demo.js":   "text/javascript; charset=utf-8",
	"/assets/banner.js": "text/javascript; charset=utf-8",
	"/assets/demo.css":  "text/css; charset=utf-8",
}

// Paths lists what Handler serves: the page at "/", its files under /assets/, the icon where browsers look for it, and Stats.
func Paths() []string {
	paths := []string{Icon, Stats}
	for _, p := range middleware.DashboardPaths() {
		if p != "/stats" {
			paths = append(paths, p)
		}
	}
	for p := range own {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// Handler serves the page about s, its files and its numbers. Capacity is what the app can do in a second, and extra what the
// buttons are doing.
func Handler(s *shed.Shedder, capacity int, extra func() any) (http.Handler, error) {
	page, err := middleware.DashboardWithConfig(middleware.DashboardConfig{
		Shedder: s, Title: "Spillway live demo", Capacity: capacity,
		Intro: part("intro"), Aside: part("aside"), Foot: part("foot"),
		Styles: []string{"/assets/demo.css"}, Scripts: []string{"/assets/demo.js"}, Stats: Stats, Extra: extra,
	})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Icon {
			r = r.Clone(r.Context())
			r.URL.Path = "/assets/icon.svg"
		}
		media, mine := own[r.URL.Path]
		if !mine {
			page.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", media)
		h.Set("Content-Security-Policy", middleware.DashboardPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, files, strings.TrimPrefix(path.Clean(r.URL.Path), "/"))
	}), nil
}

// part is a piece of the page. The files are part of the program: reading them cannot fail.
func part(name string) template.HTML {
	text, _ := files.ReadFile("parts/" + name + ".html")
	return template.HTML(text) // our own file, not anybody's input
}
