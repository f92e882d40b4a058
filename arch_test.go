package spillway_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/spillway-go/spillway"

// rooms says, for each package of this module, what it may import beside the standard library. It is the table of
// ARCHITECTURE.md as code: an arrow that turns round fails this test.
var rooms = map[string][]string{
	"limits":               {},
	"limits/redisstore":    {"limits", "github.com/redis/go-redis/v9"},
	"limits/storetest":     {"limits"},
	"limits/concurrency":   {"github.com/platinummonkey/go-concurrency-limits"},
	"queue":                {},
	"health":               {"github.com/shirou/gopsutil/v3"},
	"pumpkin":              {},
	"pumpkin/redispumpkin": {"pumpkin", "github.com/redis/go-redis/v9"},
	"shed":                 {"limits", "limits/concurrency", "queue", "health"},
	"shed/configfile":      {"shed", "limits", "limits/redisstore", "limits/concurrency", "health", "pumpkin", "pumpkin/redispumpkin", "github.com/goccy/go-yaml"},
	"shed/telemetry":       {"shed", "limits", "pumpkin", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel"},
	"middleware":           {"shed", "limits"},
	"middleware/echomw":    {"middleware", "shed", "github.com/labstack/echo/v4"},
}

// httpRooms are the only rooms that may speak HTTP (configfile checks route patterns with it).
var httpRooms = []string{"middleware", "middleware/echomw", "pumpkin", "shed/configfile"}

// TestArrowsPointDown holds every import of the library against the table.
func TestArrowsPointDown(t *testing.T) {
	for file, imports := range sources(t) {
		room := roomOf(file)
		allowed, known := rooms[room]
		if !known {
			t.Errorf("%s: the room %s is not in the table; add it with what it may import", file, room)
			continue
		}
		for _, imported := range imports {
			if why := forbidden(room, allowed, imported); why != "" {
				t.Errorf("%s imports %s: %s", file, imported, why)
			}
		}
	}
}

// TestTheTableOfArrowsIsTheCode holds the table of ARCHITECTURE.md against the one above, and that against the code: no arrow is allowed
// that nothing needs.
func TestTheTableOfArrowsIsTheCode(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	files := sources(t)
	for room, allowed := range rooms {
		_, row, found := strings.Cut(string(page), "\n| `"+room+"` | ")
		if !found {
			t.Errorf("ARCHITECTURE.md has no row for %s", room)
		}
		row, _, _ = strings.Cut(row, "\n")
		row = row[strings.Index(row, " | ")+1:] // what stands behind the question it answers
		for _, arrow := range allowed {
			if !strings.Contains(strings.ToLower(row), called(arrow)) {
				t.Errorf("the row of %s does not have %s: %s", room, called(arrow), row)
			}
			used := false
			for file, imports := range files {
				used = used || roomOf(file) == room && slices.ContainsFunc(imports, func(imported string) bool {
					imported = strings.TrimPrefix(imported, module+"/")
					return imported == arrow || strings.HasPrefix(imported, arrow+"/")
				})
			}
			if !used {
				t.Errorf("%s may import %s and does not: the arrow can go", room, arrow)
			}
		}
	}
}

// called is what the table calls a package: the path of a room, the name of a module of others.
func called(imported string) string {
	parts := strings.Split(imported, "/")
	if !strings.Contains(parts[0], ".") {
		return imported
	}
	name := parts[len(parts)-1]
	if len(name) == 2 && name[0] == 'v' {
		name = parts[len(parts)-2]
	}
	return name
}

// TestTheArrowCheckCanFail is the control: the check must object to an arrow that points up, to HTTP below the middleware
// and to a dependency nobody agreed on.
func TestTheArrowCheckCanFail(t *testing.T) {
	for _, c := range []struct{ room, imported string }{
		{"limits", module + "/shed"},
		{"shed", module + "/middleware"},
		{"queue", "net/http"},
		{"limits", "github.com/redis/go-redis/v9"},
		{"pumpkin", module + "/shed"},
	} {
		if forbidden(c.room, rooms[c.room], c.imported) == "" {
			t.Errorf("%s may import %s: the check is blind", c.room, c.imported)
		}
	}
}

func forbidden(room string, allowed []string, imported string) string {
	if imported == "net/http" && !slices.Contains(httpRooms, room) {
		return "HTTP lives in middleware and pumpkin only"
	}
	if imported == "testing" && room != "limits/storetest" {
		return "shipped code does not import testing"
	}
	local, ours := strings.CutPrefix(imported, module+"/")
	if !ours && !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
		return "" // standard library
	}
	if ours {
		local = strings.Split(local, "/internal/")[0]
		if local == room || slices.Contains(allowed, local) {
			return ""
		}
		return "the arrow points the wrong way; see the table in ARCHITECTURE.md"
	}
	for _, a := range allowed {
		if imported == a || strings.HasPrefix(imported, a+"/") {
			return ""
		}
	}
	return "a dependency that this room does not have"
}

// roomOf returns the room a file belongs to; internal packages belong to the room above them.
func roomOf(file string) string {
	return strings.Split(path.Dir(file), "/internal")[0]
}

// sources returns the imports of every file of the library that is neither a test nor a program.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "examples" || name == "bench" || name == "internal" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), !strings.Contains(name, "/"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		found[name] = nil
		for _, i := range f.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			found[name] = append(found[name], imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < len(rooms) {
		t.Fatalf("found only %d files; is this the root of the module?", len(found))
	}
	return found
}
