package spillway_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link finds the targets of Markdown links and pictures.
var link = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)

// TestEveryLinkInTheDocumentsLeadsSomewhere looks at links to files of this repository.
func TestEveryLinkInTheDocumentsLeadsSomewhere(t *testing.T) {
	links := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != "." {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 10 {
		t.Errorf("found only %d links; is this the root of the module?", links)
	}
}
