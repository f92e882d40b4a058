package configfile

import "github.com/spillway-go/spillway/shed"

var legacyWords = []string{"none", "x_ratelimit_epoch", "x_ratelimit_delta", "ratelimit_delta"}

var answersShape = shape{keys: []key{
	{name: "rate_limit", kind: kindBoolean},
	{name: "legacy", kind: kindWord, words: legacyWords},
	{name: "html", kind: kindBoolean},
}}

// answers reads the section answers.
func answers(o object) (a shed.Answers) {
	off := func(name string) bool {
		_, there := o.fields[name]
		return there && !o.boolean(name)
	}
	a.HideRateLimit, a.NoHTML = off("rate_limit"), off("html")
	if i, ok := o.word("legacy"); ok && i > 0 {
		a.Legacy = legacyWords[i]
	}
	return a
}
