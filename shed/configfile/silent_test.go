package configfile

import (
	"strings"
	"testing"
)

func TestNothingIsReadPastTheEndOfTheDocument(t *testing.T) {
	const limits = "limits: [{name: a, fixed_window: {quota: 1/s}}]\n"
	for text, want := range map[string]string{
		"routes: []\n...\n" + limits:          "f:3: stands after the end",
		"...\n" + limits:                      "f:2: stands after the end",
		limits + "...\n---\nroutes: []\n":     "f:3: stands after the end",
		limits + "---\nroutes: []\n":          "f:2: a second document",
		limits + "...\n":                      "",
		"---\n" + limits + "...\n# the end\n": "",
	} {
		_, err := Parse("f", []byte(text), Config{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
