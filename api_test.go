package spillway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// apiName finds the names in a row of docs/api.md: `Name`, `Type.Method`, and `.Method` of the type before it.
var apiName = regexp.MustCompile("`([A-Z]\\w*)?(\\.[A-Z]\\w*)?`")

// forStandardLibrary are methods that serve fmt, errors and encoding packages and need no reason of their own.
var forStandardLibrary = []string{"String", "Error", "Unwrap", "MarshalText", "UnmarshalText", "MarshalJSON", "UnmarshalJSON"}

// TestEveryExportedNameHasItsReason holds docs/api.md against the code: a name that is exported without a reason fails it, and so does a
// reason for what is no longer there.
func TestEveryExportedNameHasItsReason(t *testing.T) {
	page, err := os.ReadFile("docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := namesInPage(string(page))
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		exported := exportedNames(t, room)
		if len(exported) == 0 {
			t.Errorf("%s exports nothing; is this the root of the module?", room)
		}
		for _, name := range exported {
			if !slices.Contains(reasons[room], name) {
				t.Errorf("%s.%s is exported and docs/api.md does not say why", room, name)
			}
		}
		for _, name := range reasons[room] {
			if !slices.Contains(exported, name) {
				t.Errorf("docs/api.md gives a reason for %s.%s, which is not exported", room, name)
			}
		}
	}
	for room := range reasons {
		if _, known := rooms[room]; !known {
			t.Errorf("docs/api.md has a section %s, which is no package of the library", room)
		}
	}
}

// TestTheCheckOfExportedNamesCanFail is the control: names are found in every form that the page has, and only there.
func TestTheCheckOfExportedNamesCanFail(t *testing.T) {
	got := namesInPage("## a/b\n| names | why |\n| `New` `Type` `.Method` | not `Other` |\n| `Type.Do` `.Done` `Last` | x |\n")["a/b"]
	want := []string{"New", "Type", "Type.Method", "Type.Do", "Type.Done", "Last"}
	if !slices.Equal(got, want) {
		t.Errorf("the page has %v, want %v", got, want)
	}
}

// namesInPage returns the names that docs/api.md has, by package.
func namesInPage(page string) map[string][]string {
	names := map[string][]string{}
	room := ""
	for line := range strings.Lines(page) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			room = strings.TrimSpace(heading)
		}
		cells := strings.Split(line, "|")
		if room == "" || len(cells) < 3 {
			continue
		}
		owner := ""
		for _, m := range apiName.FindAllStringSubmatch(cells[1], -1) {
			if m[1] != "" {
				owner = m[1]
			}
			if m[0] != "``" {
				names[room] = append(names[room], owner+m[2])
			}
		}
	}
	return names
}

// exportedNames returns what a package exports: names, and the methods of exported types as Type.Method.
func exportedNames(t *testing.T, room string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(room, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names = append(names, id.Name)
			}
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				} else if owner := receiver(d); ast.IsExported(owner) && d.Name.IsExported() && !slices.Contains(forStandardLibrary, d.Name.Name) {
					names = append(names, owner+"."+d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name)
					case *ast.ValueSpec:
						add(spec.Names...)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names) // files for different systems declare the same
}

// receiver returns the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
