package spillway_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/spillway-go/spillway/shed/configfile"
)

// block is one piece of code in a document.
type block struct {
	file     string
	line     int // of its first line
	language string
	text     string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

// documents are the pages for users and contributors. ARCHITECTURE.md has drawings only.
func documents(t testing.TB) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 8 {
		t.Fatalf("only %d documents; is this the root of the module?", len(pages))
	}
	return pages
}

// blocks returns the code of a language in all documents.
func blocks(t testing.TB, language string) (found []block) {
	t.Helper()
	for _, b := range everyBlock(t) {
		if b.language == language {
			found = append(found, b)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no document has code in %s", language)
	}
	return found
}

func everyBlock(t testing.TB) (found []block) {
	t.Helper()
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var open *block
		for i, line := range strings.Split(string(text), "\n") {
			switch fence, isFence := strings.CutPrefix(line, "```"); {
			case isFence && open == nil:
				open = &block{file: page, line: i + 2, language: fence}
			case isFence:
				found, open = append(found, *open), nil
			case open != nil:
				open.text += line + "\n"
			}
		}
		if open != nil {
			t.Errorf("%s: a block of code has no end", *open)
		}
	}
	return found
}

// tried says which test tries the code of a language.
var tried = map[string]string{
	"yaml":   "TestEveryFileInTheDocumentsIsAccepted",
	"go":     "TestEveryGoSnippetCompiles",
	"sh":     "TestEveryCommandInTheDocumentsExists, and those with curl by TestTheCommandsOfTheDocumentsWork",
	"promql": "TestQueriesAskForMetricsThatExist",
	"http":   "TestTheAnswersOfTheDocumentsAreTheRealOnes",
	"nginx":  "pumpkin/widget and examples/gateway, with a real nginx",
	"caddy":  "pumpkin/widget, with a real Caddy",
	"html":   "pumpkin/widget, in a real browser",
	"js":     "pumpkin/widget, in a real browser",
	"text":   "nothing to try: what programs say, drawings, formulas",
}

func TestEveryBlockOfCodeIsTried(t *testing.T) {
	for _, b := range everyBlock(t) {
		if tried[b.language] == "" {
			t.Errorf("%s: code in %q is tried by no test; name one of the languages of docs_blocks_test.go behind ```, text for what is no code", b, b.language)
		}
	}
}

// TestEveryFileInTheDocumentsIsAccepted reads every piece of YAML as a program reads its configuration.
func TestEveryFileInTheDocumentsIsAccepted(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "keys.yaml"), []byte(`[{name: alice, digest: "sha256:`+strings.Repeat("87cbebfe", 8)+`"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks(t, "yaml") {
		if strings.HasPrefix(b.text, "http_filters:") { // Envoy's
			var filters map[string]any
			if err := yaml.Unmarshal([]byte(b.text), &filters); err != nil {
				t.Errorf("%s: %v", b, err)
			}
			continue
		}
		program := configfile.Config{Upstreams: map[string]*url.URL{}}
		c, err := configfile.Parse(filepath.Join(folder, "spillway.yaml"), []byte(b.text), program)
		if err != nil {
			t.Errorf("%s: %v", b, err)
		} else if len(c.Warnings) > 0 {
			t.Errorf("%s: warned of %q", b, c.Warnings)
		}
	}
}

// TestQueriesAskForMetricsThatExist holds queries against the table of docs/metrics.md, which is made from the code.
func TestQueriesAskForMetricsThatExist(t *testing.T) {
	page, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks(t, "promql") {
		words := strings.FieldsFunc(b.text, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz_", r) })
		words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, "spillway_") })
		if len(words) == 0 {
			t.Errorf("%s asks for no metric", b)
		}
		for _, w := range words {
			if !strings.Contains(string(page), "| `"+strings.TrimSuffix(w, "_bucket")+"` |") {
				t.Errorf("%s: there is no metric %s", b, w)
			}
		}
	}
}
