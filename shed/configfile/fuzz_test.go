package configfile

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/shed"
)

// FuzzParse: whatever the bytes are, Parse returns; what it accepts can be built, and what it refuses is told line by line.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", folder, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, s := range []string{"a: - b", "- - -\n", "{", "a:\n\t", "\"", "'", "a: |-\n", "a: >+\n\n\n", "[]: 1", "{}: {}", "? ",
		":", "a: {,}", "a: [,]", "%",
		"--- |", "queue:\n- \n  a", "#\r"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data, owning(shed.Route{Name: "health", Match: "GET /healthz"}))
		if err != nil {
			checkMessage(t, data, err)
			return
		}
		again, err := Parse("f", data, owning(shed.Route{Name: "health", Match: "GET /healthz"}))
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("the second reading differs: %v", err)
		}
		checkLimits(t, c)
		checkRoutes(t, c)
	})
}

// checkMessage demands clean lines that point into the file.
func checkMessage(t *testing.T, data []byte, err error) {
	t.Helper()
	lines := 1 + strings.Count(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") + strings.Count(string(data), "\r")
	for _, e := range err.(Errors) {
		if e.Line < 0 || e.Line > lines && e.Path == "f" {
			t.Errorf("line %d of %d: %v", e.Line, lines, e)
		}
		if e.What == "" || e.Mend == "" || !utf8.ValidString(e.Error()) || strings.IndexFunc(e.Error(), unicode.IsControl) >= 0 {
			t.Errorf("not fit to be shown: %q", e.Error())
		}
		if len(e.Error()) > 2000 {
			t.Errorf("%d bytes: %.200s", len(e.Error()), e)
		}
	}
}

// checkLimits demands what shed.New would.
func checkLimits(t *testing.T, c *Config) {
	t.Helper()
	names := map[string]bool{}
	for _, l := range c.Shed.Limits {
		if names[l.Name] || l.MaxWait != 0 && l.Excess != shed.Delay {
			t.Errorf("%+v", l)
		}
		names[l.Name] = true
		l.Routes = nil // of which there may be none here
		s, err := shed.New(shed.Config{Limits: []shed.Limit{l}, Health: health.Config{Off: true}})
		if err != nil {
			t.Errorf("%+v: %v", l, err)
			continue
		}
		s.Close()
	}
}

func checkRoutes(t *testing.T, c *Config) {
	t.Helper()
	names, held := map[string]bool{}, false
	mux := newPatterns(nil).mux
	for _, r := range c.Shed.Routes {
		if names[r.Name] || r.Name == "" {
			t.Errorf("the name of %+v", r)
		}
		names[r.Name] = true
		if why := register(mux, r.Match); why != "" {
			t.Errorf("%s: %s", r.Match, why)
		}
		held = held || r.Exempt && r.Match == "GET /healthz"
	}
	if !held {
		t.Errorf("the program's exempt route is gone: %+v", c.Shed.Routes)
	}
}
