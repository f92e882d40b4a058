package configfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	decimal     = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
)

// text returns the string under a key, or "".
func (o object) text(name string) string {
	v, _, ok := o.at(name, kindText)
	if !ok {
		return ""
	}
	s, _ := v.text()
	return s
}

// text reads v as a string that is not empty.
func (v value) text() (string, bool) {
	s, ok := v.scalar("text", "text")
	if !ok {
		return "", false
	}
	if !s.str {
		v.fail("must be text, and "+bare(s.text)+" is not", "put it in quotes: "+shown(s.text))
		return "", false
	}
	if s.text == "" {
		v.fail("is empty", "write some text"+v.mend)
		return "", false
	}
	return s.text, true
}

// texts returns the strings in the list under a key as values that know their lines; an empty list is a mistake.
func (o object) texts(name string) []value {
	v, _, ok := o.at(name, kindTexts, kindWords)
	if !ok {
		return nil
	}
	items, ok := v.list()
	if ok && len(items) == 0 {
		v.fail("is an empty list", "give it entries"+v.mend)
	}
	return items
}

// word returns the index among its words of the word under a key; it is false when there is none that is right.
func (o object) word(name string) (int, bool) {
	v, k, ok := o.at(name, kindWord)
	if !ok {
		return 0, false
	}
	return v.word(k)
}

func (v value) word(k key) (int, bool) {
	s, ok := v.scalar("one word", either(k.words))
	if !ok {
		return 0, false
	}
	if i := slices.Index(k.words, s.text); i >= 0 {
		return i, true
	}
	v.fail(bare(s.text)+" is not known here", didYouMean(s.text, k.words))
	return 0, false
}

// words returns the words in the list under a key, each at most once.
func (o object) words(name string) []string {
	_, k, _ := o.at(name, kindWords)
	var all []string
	for _, item := range o.texts(name) {
		i, ok := item.word(k)
		switch {
		case !ok:
		case slices.Contains(all, k.words[i]):
			item.fail(k.words[i]+" is in the list twice", "keep one of them")
		default:
			all = append(all, k.words[i])
		}
	}
	return all
}

// integer returns the whole number under a key; it is false when there is none that is right.
func (o object) integer(name string) (int64, bool) {
	v, k, ok := o.at(name, kindInteger)
	if !ok {
		return 0, false
	}
	s, ok := v.scalar("a whole number", "a whole number such as "+strconv.FormatInt(k.example(), 10))
	switch {
	case !ok:
		return 0, false
	case s.quoted && wholeNumber.MatchString(s.text):
		v.fail("must be a whole number, and "+shown(s.text)+" is text", "remove the quotes")
		return 0, false
	case !wholeNumber.MatchString(s.text):
		v.fail("must be a whole number, and "+bare(s.text)+" is not", "write it in plain digits")
		return 0, false
	}
	n, err := strconv.ParseInt(s.text, 10, 64)
	if err != nil || n < k.min || n > k.max {
		v.fail(s.short()+" is out of range", fmt.Sprintf("use %d to %d", k.min, k.max))
		return 0, false
	}
	return n, true
}

// example returns a number that is allowed.
func (k key) example() int64 { return min(max(k.min, 20), k.max) }

func (s scalar) short() string { return strings.Trim(shown(s.text), `"`) }

// number returns the decimal under a key; it is false when there is none that is right.
func (o object) number(name string) (float64, bool) {
	v, k, ok := o.at(name, kindNumber)
	if !ok {
		return 0, false
	}
	low, high := float64(k.min)/1000, float64(k.max)/1000
	s, ok := v.scalar("a number", fmt.Sprintf("a number from %g to %g", low, high))
	if !ok {
		return 0, false
	}
	if s.quoted || !decimal.MatchString(s.text) {
		v.fail("must be a number, and "+shown(s.text)+" is not", fmt.Sprintf("write a decimal from %g to %g", low, high))
		return 0, false
	}
	n, err := strconv.ParseFloat(s.text, 64)
	if err != nil || n < low || n > high {
		v.fail(s.short()+" is out of range", fmt.Sprintf("use %g to %g", low, high))
		return 0, false
	}
	return n, true
}

// boolean returns the truth under a key, false when it is not there.
func (o object) boolean(name string) bool {
	v, _, ok := o.at(name, kindBoolean)
	if !ok {
		return false
	}
	s, ok := v.scalar("true or false", "true or false")
	if ok && (s.quoted || s.text != "true" && s.text != "false") {
		v.fail("must be true or false, and "+shown(s.text)+" is neither", "write true or false")
		return false
	}
	return ok && s.text == "true"
}

// duration returns the time under a key, or 0.
func (o object) duration(name string) time.Duration {
	v, k, ok := o.at(name, kindDuration)
	if !ok {
		return 0
	}
	low, high := compact(time.Duration(k.min)), compact(time.Duration(k.max))
	s, ok := v.scalar("a duration", "a duration such as "+low)
	if !ok {
		return 0
	}
	if wholeNumber.MatchString(s.text) {
		v.fail(s.short()+" has no unit", "write it with one, such as "+s.short()+"s or "+s.short()+"ms")
		return 0
	}
	d, err := time.ParseDuration(s.text)
	if err != nil {
		v.fail(shown(s.text)+" is not a duration", "write it like 500ms, 2s or 1m30s")
		return 0
	}
	if d < time.Duration(k.min) || d > time.Duration(k.max) {
		v.fail(s.short()+" is out of range", "use "+low+" to "+high)
		return 0
	}
	return d
}

// compact prints 10m0s as 10m.
func compact(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
