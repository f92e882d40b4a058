package pumpkin

import (
	"regexp"
	"strings"
	"testing"
)

func TestIfNoneMatch(t *testing.T) {
	const tag = `"E"`
	for _, c := range []struct {
		lines []string
		want  bool
		why   string
	}{
		{[]string{`"E"`}, true, "exact"},
		{[]string{`W/"E"`}, true, "weakened by a proxy"},
		{[]string{`"a", "E"`}, true, "in a list"},
		{[]string{`"a",W/"b" , W/"E"`}, true, "in a list with spaces"},
		{[]string{`*`}, true, "anything"},
		{[]string{" \t* "}, true, "anything, with spaces"},
		{[]string{`"a"`, `"E"`}, true, "on a second line"},
		{[]string{`, ,"E",`}, true, "empty elements"},
		{[]string{`"a,b","E"`}, true, "a comma within a tag"},
		{nil, false, "absent"},
		{[]string{``}, false, "empty"},
		{[]string{`"other"`}, false, "other"},
		{[]string{`E`}, false, "no quotes"},
		{[]string{`"E`}, false, "unterminated"},
		{[]string{`"E" "E"`}, true, "the first is sound"},
		{[]string{`"a" "E"`}, false, "no comma"},
		{[]string{`garbage, "E"`}, false, "behind garbage"},
		{[]string{`w/"E"`}, false, "W is written large"},
		{[]string{`W/ "E"`}, false, "a space within"},
		{[]string{`W/W/"E"`}, false, "weak twice"},
		{[]string{`"a", *`}, false, "* stands alone"},
		{[]string{`"a` + "\x00" + `","E"`}, false, "control character"},
		{[]string{`"e"`}, false, "case matters"},
		{[]string{`"E,"E"`}, false, "a quote too many"},
	} {
		if got := matchesTag(c.lines, tag); got != c.want {
			t.Errorf("%q: %v, want %v (%s)", c.lines, got, c.want, c.why)
		}
	}
}

// listElement is the grammar of RFC 9110 for one element of If-None-Match and what follows it.
var listElement = regexp.MustCompile(`^[ \t,]*(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*`)

// matchesByGrammar is matchesTag written with the grammar, to check it against.
func matchesByGrammar(line, tag string) bool {
	if strings.Trim(line, " \t") == "*" {
		return true
	}
	for {
		m := listElement.FindStringSubmatch(line)
		switch {
		case m == nil:
			return false
		case m[1] == tag:
			return true
		}
		line = line[len(m[0]):]
		if !strings.HasPrefix(line, ",") {
			return false
		}
	}
}

func FuzzIfNoneMatch(f *testing.F) {
	for _, s := range []string{`"E"`, `W/"E"`, `"a", W/"E"`, `*`, `"E`, ``, `"a""E"`, `,,"E",,`, "\"\x80\", \"E\"", `W/"a",`, `garbage`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for i := range len(line) {
			if line[i] >= 0x80 {
				t.Skip() // regexp reads runes, headers are bytes; TestIfNoneMatch has the bytes
			}
		}
		if got, want := matchesTag([]string{line}, `"E"`), matchesByGrammar(line, `"E"`); got != want {
			t.Errorf("%q: %v, the grammar says %v", line, got, want)
		}
	})
}
