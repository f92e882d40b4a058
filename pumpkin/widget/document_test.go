package widget

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/browser/browsertest"
	"github.com/spillway-go/spillway/pumpkin"
)

// TestTheScriptOfTheDocumentWorks runs what docs/pumpkin.md tells pages to run.
func TestTheScriptOfTheDocumentWorks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tab := open(t, s.URL+"/overlay", "")
	e := notice(pumpkin.Major, "Search is off.")
	e.Features = map[string]pumpkin.Feature{"search": {Off: 1}}
	s.put(t, "search", e)
	tab.Becomes(`window.pumpkin?.blocked("search")`)
	told := snippets(t, "js")
	if len(told) != 1 {
		t.Fatalf("docs/pumpkin.md has %d scripts; this test knows one", len(told))
	}
	if got := browsertest.Value[string](tab, `(() => {
		window.saved = 0; window.heard = [];
		window.showTheSavedResults = () => saved++; window.update = d => heard.push(d.rev);
		`+told[0]+`
		return "ran";
	})()`); got != "ran" {
		t.Fatal(got)
	}
	s.put(t, "more", notice(pumpkin.Minor, "Something else."))
	tab.Becomes(`saved == 1 && heard.length > 0`)
}

// The elements that docs/pumpkin.md shows are those of the pages on which all tests here run.
func TestTheElementsOfTheDocumentAreTried(t *testing.T) {
	all := ""
	for _, page := range pages {
		all += page
	}
	for _, block := range snippets(t, "html") {
		for line := range strings.Lines(block) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "<body>")
			if line != "..." && !strings.Contains(all, line) {
				t.Errorf("%s is on no page", line)
			}
		}
	}
}
