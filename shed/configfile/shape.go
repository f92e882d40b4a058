package configfile

import (
	"slices"
	"strings"
	"time"
)

// kind is what a key's value looks like in the file.
type kind uint8

const (
	kindText      kind = iota // a string
	kindInteger               // a whole number from min to max
	kindNumber                // a decimal number from min to max
	kindBoolean               // true or false
	kindDuration              // a Go duration from min to max nanoseconds
	kindRate                  // AMOUNT/PERIOD
	kindQuota                 // AMOUNT/PERIOD, where the amount may be 0
	kindWord                  // one of words
	kindWords                 // a list of words
	kindTexts                 // a list of strings
	kindSection               // a mapping of the shape in
	kindSections              // a list of such mappings
	kindNamed                 // a mapping of names to such mappings
	kindTextMap               // a mapping of names to strings
	kindNumberMap             // a mapping of names to decimal numbers from min to max
)

// shape lists the keys that a mapping may have. Decoding, suggestions, the schema's test and the documentation's test all
// read the same list, so a key cannot exist in one of them only.
type shape struct {
	keys []key
}

// key is one key of a mapping.
type key struct {
	name string
	kind kind
	in   *shape
	// words are what a word may be.
	words []string
	// min and max bound an integer, a number (in thousandths) or a duration (in nanoseconds), both included. For
	// sections max bounds how many there may be.
	min, max int64
	// required is an example for a key that must be there; empty means that it may be missing.
	required string
}

func (s *shape) key(name string) (key, bool) {
	i := slices.IndexFunc(s.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return s.keys[i], true
}

func (s *shape) names() []string {
	all := make([]string, len(s.keys))
	for i, k := range s.keys {
		all[i] = k.name
	}
	return all
}

// fileShape is the shape of the whole file.
var fileShape = shape{
	keys: []key{
		{name: "clients", kind: kindSection, in: &clientsShape},
		{name: "limits", kind: kindSections, in: &limitShape, max: 100},
		{name: "routes", kind: kindSections, in: &routeShape, max: 1000},
		{name: "answers", kind: kindSection, in: &answersShape},
		{name: "bodies", kind: kindSection, in: &bodiesShape},
		{name: "concurrency", kind: kindSection, in: &concurrencyShape},
		{name: "queue", kind: kindSection, in: &queueShape},
		{name: "health", kind: kindSection, in: &healthShape},
		{name: "store", kind: kindSection, in: &storeShape},
		{name: "pumpkin", kind: kindSection, in: &pumpkinShape},
		{name: "mode", kind: kindWord, words: modeWords},
	},
}

// longestWait bounds the waits of queues: what waits longer holds a connection that its client has given up.
const longestWait = int64(10 * time.Minute)

// joined takes out of a name what people forget or mix up.
var joined = strings.NewReplacer("-", "", "_", "", " ", "")

// suggestion returns the name that was probably meant by wrong, or "".
func suggestion(wrong string, names []string) string {
	if len(wrong) > 64 {
		return ""
	}
	fold := func(s string) string { return joined.Replace(strings.ToLower(s)) }
	best, least := "", 1+max(1, len(wrong)/3)
	for _, name := range names {
		if d := distance(fold(wrong), fold(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to insert, remove, replace or swap with their neighbour to get from a to b (optimal string
// alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// didYouMean is the way out for a name that is not one of names.
func didYouMean(wrong string, names []string) string {
	if s := suggestion(wrong, names); s != "" {
		return "did you mean " + s + "?"
	}
	return "use " + either(names)
}

// either joins words as a person would: "a", "a or b", "a, b or c".
func either(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}
