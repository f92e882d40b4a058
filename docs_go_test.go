package spillway_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// What a snippet may take for granted: the packages it names, and the values that the text around it speaks of.
var (
	snippetImports = []string{
		"context", "encoding/json", "errors", "fmt", "log", "log/slog", "net/http", "os", "time",
		module + "/health", module + "/limits", module + "/limits/concurrency", module + "/limits/redisstore", module + "/middleware",
		module + "/middleware/echomw", module + "/pumpkin", module + "/pumpkin/redispumpkin", module + "/queue", module + "/shed", module + "/shed/configfile",
		module + "/shed/telemetry", "github.com/labstack/echo/v4", "github.com/redis/go-redis/v9",
		"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_golang/prometheus/promhttp",
	}
	snippetValues = `
var (
	ctx      context.Context
	mux      = http.NewServeMux()
	admin    = http.NewServeMux()
	e        = echo.New()
	c        echo.Context
	s        *shed.Shedder
	p        *pumpkin.Pumpkin
	w        http.ResponseWriter
	r        *http.Request
	err      error
	path     string
	defaults shed.Config

	userOf       func(*http.Request) string
	authenticate func(http.Handler) http.Handler
)
`
	elision = regexp.MustCompile(`(?m)^\s*(\.\.\.|…)\s*$`)
)

// TestEveryGoSnippetCompiles type-checks each snippet as the body of a function. A line of "..." and "{ … }" stand for what is left out;
// what is declared and not used is left to the reader.
func TestEveryGoSnippetCompiles(t *testing.T) {
	check := snippetChecker(t)
	for _, b := range blocks(t, "go") {
		for _, err := range check(b.text) {
			t.Errorf("%s: %v", b, err)
		}
	}
}

func TestTheCheckOfSnippetsCanFail(t *testing.T) {
	check := snippetChecker(t)
	for text, fine := range map[string]bool{
		"s, err := shed.New(shed.Config{})":                                             true,
		"s, err := shed.New(shed.Config{Quotas: nil})":                                  false,
		"...\nmiddleware.Shed(nothing)":                                                 false,
		"if client, err := pumpkin.NewClient(pumpkin.ClientConfig{}); err == nil { … }": true,
		"limits.TokenBucket{":                                                           false,
		"func f() { shed.Nothing() }":                                                   false,
		"func f() { mux.Handle(\"/\") }":                                                false,
	} {
		if errs := check(text); (len(errs) == 0) != fine {
			t.Errorf("%q: %v", text, errs)
		}
	}
}

// snippetChecker returns a function that says what is wrong with a snippet.
func snippetChecker(t *testing.T) func(text string) []error {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, snippetImports...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[name] = file
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var head strings.Builder
	head.WriteString("package main\nimport (\n")
	for _, path := range snippetImports {
		fmt.Fprintf(&head, "%q\n", path)
	}
	head.WriteString(")\n" + snippetValues)
	return func(text string) (wrong []error) {
		text = strings.ReplaceAll(elision.ReplaceAllString(text, ""), "{ … }", "{}")
		if !strings.HasPrefix(text, "func ") && !strings.HasPrefix(text, "type ") {
			text = "func snippet() {\n" + text + "\n}"
		}
		file, err := parser.ParseFile(fset, "snippet.go", head.String()+text, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		config := types.Config{Importer: imports, Error: func(err error) {
			if e, ok := err.(types.Error); !ok || !e.Soft {
				wrong = append(wrong, err)
			}
		}}
		_, _ = config.Check("snippet", fset, []*ast.File{file}, nil)
		return wrong
	}
}
