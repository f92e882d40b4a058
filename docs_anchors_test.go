package spillway_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// anchored finds links of Markdown to a heading, of the same page or of another one.
	anchored = regexp.MustCompile(`\]\(([^)\s#]*)#([^)\s]+)\)`)
	// unspoken is what GitHub leaves out of a heading when it makes an anchor of it.
	unspoken = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns what the headings of a page can be linked by.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	inCode := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		heading := strings.TrimLeft(line, "#")
		if inCode || len(heading) == len(line) || !strings.HasPrefix(heading, " ") {
			continue
		}
		heading = unspoken.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
		found[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return found
}

// TestEveryLinkToAHeadingLeadsToOne looks at links with # in the documents.
func TestEveryLinkToAHeadingLeadsToOne(t *testing.T) {
	links := 0
	for _, page := range append(documents(t), "ARCHITECTURE.md", "CHANGELOG.md", "bench/peers/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range anchored.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			target, heading := page, m[2]
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			there, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s: %v", page, err)
			} else if !anchors(string(there))[heading] {
				t.Errorf("%s links to #%s of %s, which has no such heading", page, heading, target)
			}
		}
	}
	if links < 50 {
		t.Errorf("found only %d links to headings", links)
	}
}

func TestTheCheckOfHeadingsCanFail(t *testing.T) {
	there := anchors("# What `x` costs, in ns\n```sh\n# no heading\n```\n#none\n## Twice as **much**?\n")
	for anchor, want := range map[string]bool{
		"what-x-costs-in-ns": true, "twice-as-much": true, "no-heading": false, "none": false, "what-x-costs": false,
	} {
		if there[anchor] != want {
			t.Errorf("%s: %v, want %v", anchor, there[anchor], want)
		}
	}
}
