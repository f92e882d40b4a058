package middleware

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/shed"
)

//go:embed dashboard
var dashboardFiles embed.FS

// DashboardPolicy is the Content-Security-Policy of the dashboard: files of its own origin only, no inline script or style,
// no frames, no forms.
const DashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// DashboardConfig says what a dashboard shows beside the charts. Only Shedder is required.
type DashboardConfig struct {
	// Shedder is what is shown.
	Shedder *shed.Shedder
	// Title is the heading; empty means "Spillway".
	Title string
	// Capacity is how many requests a second the service can do, for a line in the chart; 0 means that nobody knows.
	Capacity int

	// Intro stands under the heading, Aside beside the first chart, Foot below everything. They are the program's own HTML
	// and must live under DashboardPolicy.
	Intro, Aside, Foot template.HTML
	// Styles and Scripts are the URLs of the program's own style sheets and script modules, of the same origin. A script
	// gets each answer of the statistics in the event "spillway:stats" of the document.
	Styles, Scripts []string
	// Stats is the URL that the page asks for statistics; empty means "stats", beside the page.
	Stats string
	// Extra is called for each answer of the statistics, and its result goes along as the member "extra"; it must be
	// marshalable to JSON. Nil means that there is none.
	Extra func() any
}

// Dashboard returns a live page about s: charts of the last minute (offered, served at once and delayed, refused by kind,
// limit, in flight, waiting, pressure, answer times), and tables of rules, reasons and signals. Mount it with a slash at the
// end, behind the listener that only operators reach:
//
//	admin.Handle("/dashboard/", middleware.Dashboard(s))
//
// It loads nothing from the network, runs under DashboardPolicy, shows no client's name, and asks the process for some
// hundred bytes four times a second while somebody looks. It panics if s is nil; DashboardWithConfig returns the error.
func Dashboard(s *shed.Shedder) http.Handler {
	h, err := DashboardWithConfig(DashboardConfig{Shedder: s})
	if err != nil {
		panic(err)
	}
	return h
}

// DashboardWithConfig is Dashboard with parts of the program's own, or says what is wrong with them. The handler goes by the
// end of the path: "/" is the page, "/stats" the statistics, "/assets/NAME" its files; so it needs no http.StripPrefix, and
// a router that knows only whole paths needs those listed by DashboardPaths.
func DashboardWithConfig(cfg DashboardConfig) (http.Handler, error) {
	if cfg.Shedder == nil {
		return nil, errors.New("middleware: a dashboard needs a Shedder; make one with shed.New")
	}
	if cfg.Title == "" {
		cfg.Title = "Spillway"
	}
	if cfg.Stats == "" {
		cfg.Stats = "stats"
	}
	d := &dashboard{files: make(map[string]dashboardFile), stats: newDashboardStats(cfg)}
	entries, err := dashboardFiles.ReadDir("dashboard")
	if err != nil {
		return nil, fmt.Errorf("middleware: read the dashboard: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		body, err := dashboardFiles.ReadFile("dashboard/" + name)
		if err != nil {
			return nil, fmt.Errorf("middleware: read the dashboard: %w", err)
		}
		if name != "index.html" {
			d.files["/assets/"+name] = newDashboardFile(name, body)
			continue
		}
		page, err := template.New(name).Parse(string(body))
		if err != nil {
			return nil, fmt.Errorf("middleware: the dashboard's page: %w", err)
		}
		var text bytes.Buffer
		if err := page.Execute(&text, cfg); err != nil {
			return nil, fmt.Errorf("middleware: the dashboard's page: %w", err)
		}
		d.files["/"] = newDashboardFile(name, text.Bytes())
	}
	return d, nil
}

// DashboardPaths lists what a dashboard serves below the place where it is mounted, "/stats" included.
func DashboardPaths() []string {
	paths := []string{"/", "/stats"}
	entries, _ := dashboardFiles.ReadDir("dashboard") // part of the program: reading it cannot fail
	for _, entry := range entries {
		if entry.Name() != "index.html" {
			paths = append(paths, "/assets/"+entry.Name())
		}
	}
	return paths
}

type dashboard struct {
	files map[string]dashboardFile // by the end of the path
	stats *dashboardStats
}

// dashboardFile is one file, ready to be sent.
type dashboardFile struct{ body, media, tag string }

// dashboardMedia are the media types of the files; whatever the machine's own tables say, these are what is sent.
var dashboardMedia = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

func newDashboardFile(name string, body []byte) dashboardFile {
	sum := sha256.Sum256(body)
	return dashboardFile{string(body), dashboardMedia[path.Ext(name)], `"` + base64.RawURLEncoding.EncodeToString(sum[:9]) + `"`}
}

func (d *dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !allowsRead(w, r) {
		return
	}
	end := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch {
	case end == "":
		d.files["/"].serve(w, r)
	case end == "stats":
		d.stats.serve(w, r)
	case strings.HasSuffix(r.URL.Path, "/assets/"+end):
		if f, ok := d.files["/assets/"+end]; ok {
			f.serve(w, r)
			return
		}
		fallthrough
	default:
		w.Header().Set("X-Content-Type-Options", "nosniff")
		reply(w, http.StatusNotFound, "the dashboard has no such file\n")
	}
}

func (f dashboardFile) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Content-Security-Policy", DashboardPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(f.body)) // nobody can be told if the client is gone
	}
}

// dashboardState is what the tables of the page show: the parts of the status that change slowly.
type dashboardState struct {
	Rules   []dashboardRule       `json:"rules"`
	Refused map[shed.Reason]int64 `json:"refused"`
	Signals []dashboardSignal     `json:"signals"`
}

type dashboardRule struct {
	Name        string `json:"name"`
	Rule        string `json:"rule"`
	Admitted    int64  `json:"admitted"`
	Delayed     int64  `json:"delayed"`
	Refused     int64  `json:"refused"`
	Shadow      bool   `json:"shadow"`
	WouldRefuse int64  `json:"would_refuse"`
}

type dashboardSignal struct {
	Signal   string  `json:"signal"`
	State    string  `json:"state"`
	Pressure float64 `json:"pressure"`
}

func stateOf(st *shed.Status) dashboardState {
	s := dashboardState{Refused: st.Refused}
	for _, r := range st.Rules {
		s.Rules = append(s.Rules, dashboardRule{r.Name, r.Rule, r.Admitted, r.Delayed, r.Refused, r.Shadow, r.WouldRefuse})
	}
	for _, g := range st.Health.Signals {
		s.Signals = append(s.Signals, dashboardSignal{g.Signal, g.State.String(), g.Pressure})
	}
	return s
}

// marshal is json.Marshal of what is made of numbers and strings only, which cannot fail.
func marshal(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}
