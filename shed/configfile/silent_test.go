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

func TestPatternsThatNoRequestMatches(t *testing.T) {
	for pattern, want := range map[string]string{
		"GET /a?b=c":               "without their query",
		"/a?b":                     "without their query",
		"http://shop.example/a":    "without their scheme",
		"GET https://a.example/":   "without their scheme",
		"example.com:8080/a":       "without the port",
		"GET [::1]:80/":            "without the port",
		"/a/*":                     "to the letter",
		"GET /*/b":                 "to the letter",
		"GET /a/:id":               "to the letter",
		"get /a":                   "in capitals",
		"CONNECT example.com:443/": "",
		"GET [::1]/":               "",
		"GET /a*b/{rest...}":       "",
		"GET /a:b":                 "",
	} {
		why := fault(pattern)
		if want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%q: got %q, want %q", pattern, why, want)
		}
	}
}
