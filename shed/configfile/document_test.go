package configfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/go-cmp/cmp"
)

// refused returns what Parse says about text.
func refused(t *testing.T, text string) string {
	t.Helper()
	_, err := Parse("f", []byte(text), Config{})
	if err == nil {
		t.Fatalf("%.80q was accepted", text)
	}
	return err.Error()
}

func TestWhatIsNotTextIsRefusedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"queue: {}\n# \xff\n":                     "f:2: this line is not UTF-8; save the file as UTF-8 text",
		"\xff\xfeq\x00":                           "f:1: this line is not UTF-8; save the file as UTF-8 text",
		"queue: {}\n\n# \x1b[31m\n":               "f:3: this line holds the control character U+001B; remove it",
		"a\rb\r\nc\nd\x00":                        "f:4: this line holds the control character U+0000; remove it",
		"# \u2028 is a line end to some\n":        "f:1: this line holds the control character U+2028; remove it",
		"#" + strings.Repeat(" ", maxBytes) + "x": "f: the file is longer than 1024 KiB; is this the right file? shorten it",
	} {
		if got := refused(t, text); got != want {
			t.Errorf("%.40q\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestLineEndsAndByteOrderMarkDoNotMatter(t *testing.T) {
	lines := []string{"# comment", "queue:", "", "  capacity: 5", "health: {cpu: {low: 0.1,", "  high: 0.2}}"}
	want := parsed(t, strings.Join(lines, "\n"), Config{})
	for _, end := range []string{"\r\n", "\r"} {
		same(t, parsed(t, strings.Join(lines, end)+end, Config{}), want)
		bad := strings.Join(append(lines, "quueue: {}"), end)
		if got := refused(t, bad); got != "f:7: quueue: unknown key; did you mean queue?" {
			t.Errorf("with %q: %s", end, got)
		}
	}
	same(t, parsed(t, "\ufeff"+strings.Join(lines, "\n"), Config{}), want)
	same(t, parsed(t, "---\n"+strings.Join(lines, "\n")+"\n...\n", Config{}), want)
}

func TestLinesAreRightBehindTextOfSeveralLines(t *testing.T) {
	for text, want := range map[string]string{
		"clients:\n  api_key_header: 'X\n\n    Y'\n  unknown: no\n":             "f:5: clients.unknown: ",
		"clients:\n  api_key_header: |\n    X\n    Y\n\n  unknown: no\n":        "f:6: clients.unknown: ",
		"clients:\n  identify: [api_key, # why\n    # and\n    ip]\nlimts: []":  "f:5: limts: ",
		"clients:\n  identify:\n    - ip\n    -\n      cookie\n":                "f:5: clients.identify[1]: ",
		"limits:\n  -\n    name: a\n    \"leaky_bucket\":\n      {leak: 1/s}\n": "f:4: limits[0].leaky_bucket.capacity: is missing",
	} {
		if got := refused(t, text); !strings.Contains(got, want) {
			t.Errorf("%q\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// TestHostileFilesAreRefusedInAFewWords has the shapes that have cost parsers their stack or exponential time; either would end
// the whole test run.
func TestHostileFilesAreRefusedInAFewWords(t *testing.T) {
	const size = 50_000
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	var stairs strings.Builder
	for i := 0; stairs.Len() < size; i++ {
		fmt.Fprintf(&stairs, "%*sa:\n", i, "")
	}
	var keys strings.Builder
	for i := range maxTokens / 15 {
		fmt.Fprintf(&keys, "key%d: 1\n", i)
	}
	for name, text := range map[string]string{
		"brackets": fill("["), "braces": fill("{"), "open mappings": fill("{a: "), "open lists": "a: " + fill("[b, "),
		"dashes": fill("- "),
		"keys":   fill("a: "), "explicit keys": fill("? "), "anchors": fill("&a "), "aliases": fill("*a "), "tags": fill("!a "),
		"many keys": keys.String(),
		"same key":  fill("a: b\n"), "quotes": fill("\"a\" "), "open quote": "a: '" + fill("x\n"), "block": "a: |\n" + fill("  x\n"),
		"comments": fill("#\n"), "spaces": fill(" ") + "a",
		"documents": fill("---\n"), "document ends": fill("...\n"), "stairs": stairs.String(),
		"routes":    "routes:\n" + fill("- {name: a, match: /a}\n"),
		"limits":    "limits:\n" + fill("- {name: a}\n"),
		"long key":  strings.Repeat("k", size) + ": 1",
		"long text": "clients: {unknown: " + strings.Repeat("k", size) + "}",
		"long rate": "limits: [{name: a, token_bucket: {capacity: 1, refill: " + strings.Repeat("9", size) + "/s}}]",
	} {
		t.Run(name, func(t *testing.T) {
			if got := refused(t, text); len(got) > 10_000 {
				t.Errorf("the error has %d bytes", len(got))
			}
		})
	}
}

func TestTheLargestConfigurationIsRead(t *testing.T) {
	var text strings.Builder
	text.WriteString("limits:\n")
	for i := range 100 {
		fmt.Fprintf(&text, "  - {name: l%d, token_bucket: {capacity: 20, refill: 5/s}, per: client, routes: [r%d]}\n", i, i)
	}
	text.WriteString("routes:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  - name: r%d\n    match: \"GET /r%d/{id}\"\n    cost: 2\n    priority: sheddable\n    feature: f%d\n", i, i, i)
	}
	c := parsed(t, text.String(), Config{})
	if len(c.Shed.Limits) != 100 || len(c.Shed.Routes) != 1000 {
		t.Errorf("%d limits and %d routes", len(c.Shed.Limits), len(c.Shed.Routes))
	}
	got, want := refused(t, text.String()+"  - {name: more, match: /more}\n"),
		"f:102: routes: has 1001 entries, at most 1000 are allowed; merge some of them"
	if got != want {
		t.Error(got)
	}
}

func TestAPanicOfTheYAMLLibraryIsASyntaxError(t *testing.T) {
	file, err := guarded(func() (*ast.File, error) { panic("index out of range") })
	p := &problems{path: "f"}
	p.syntax(err)
	want := "f:1: not valid YAML: this cannot be understood; check the indentation, brackets and quotes here"
	if got := p.err(); file != nil || got == nil || got.Error() != want {
		t.Errorf("got %v", got)
	}
}

func TestMistakesAreListedInTheOrderOfTheFile(t *testing.T) {
	got := strings.Split(refused(t, "pumpkin: {x: 1}\nqueue: {capacity: -1}\nlimits: 5\nclients: {unknown: 1}\n"), "\n")
	want := []string{
		"f:1: pumpkin.x: unknown key; use poll_after, poll_idle, default_lang, templates, file, auto, redis or admin",
		"f:2: queue.capacity: -1 is out of range; use 0 to 1000000",
		"f:3: limits: must be a list; write [ ... ], or begin each entry with a dash",
		"f:4: clients.unknown: 1 is not known here; use refuse, shared or exempt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFileOfTooManyTokensIsRefusedBeforeItIsParsed(t *testing.T) {
	got := refused(t, strings.Repeat("a: b\n", maxTokens/3+1))
	if want := "f: the file has more than 30000 words and signs; is this the right file? shorten it"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
