package spillway_test

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// measured are the tables of bench/peers/README.md as they were printed; other pages quote them.
const measured = "bench/peers/README.md"

// sheet is a table of a page: its first row has the names of the columns.
type sheet [][]string

// sheetOf returns the table whose first row begins with some columns.
func sheetOf(t *testing.T, page string, begins ...string) (s sheet) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var cells []string
		for cell := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		switch starts := len(cells) >= len(begins) && slices.Equal(cells[:len(begins)], begins); {
		case starts, s != nil && strings.HasPrefix(line, "|"):
			s = append(s, cells)
		case s != nil:
			return s
		}
	}
	t.Fatalf("%s has no table that begins with %q", page, begins)
	return nil
}

// row returns the first row that begins with some cells.
func (s sheet) row(t *testing.T, begins ...string) []string {
	t.Helper()
	for _, cells := range s {
		if len(cells) >= len(begins) && slices.Equal(cells[:len(begins)], begins) {
			return cells
		}
	}
	t.Fatalf("no row begins with %q", begins)
	return nil
}

var figure = regexp.MustCompile(`^[\d.]+(?: \d{3})*`)

// number is the figure that a cell begins with.
func number(t *testing.T, cell string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(figure.FindString(cell), " ", ""), 64)
	if err != nil {
		t.Fatalf("%q is no figure", cell)
	}
	return n
}

// quotes compares the columns of a row that quotes with those of the row that is quoted, as far as three figures are shown.
func quotes(t *testing.T, page string, quoting []string, columns []int, quoted []string, of []int) {
	t.Helper()
	for i, c := range columns {
		if got, want := number(t, quoting[c]), number(t, quoted[of[i]]); math.Abs(got-want) > 0.008*want {
			t.Errorf("%s: %s: %s, but %s says %s", page, quoting[0], quoting[c], measured, quoted[of[i]])
		}
	}
}

// TestFiguresAgree holds what pages say of other libraries against the tables that were measured.
func TestFiguresAgree(t *testing.T) {
	const comparison = "docs/comparison.md"
	rules := sheetOf(t, measured, "limiter", "version", "hot allow 1")
	for _, row := range sheetOf(t, "README.md", "limiter", "version", "hot key")[2:] {
		quoted := rules.row(t, row[0])
		for i, of := range []int{1, 2, 4, 6, 7, 8, 12, 13} { // with the ratio in brackets, so as text
			if got, want := row[i+1], quoted[of]; got != want {
				t.Errorf("README.md: %s: %s, but %s says %s", row[0], got, measured, want)
			}
		}
	}
	for _, row := range sheetOf(t, comparison, "a rate limiter's decision")[2:] {
		name := map[string]string{
			"Spillway `limits.Memory`": "Spillway limits.Memory", "throttled": "throttled memstore", "go-chi/httprate": "httprate local counter",
			"failsafe-go": "failsafe-go bursty in a sync.Map", "Echo's limiter": "Echo RateLimiterMemoryStore",
		}[row[0]]
		if name == "" {
			name = row[0]
		}
		quotes(t, comparison, row, []int{1, 2, 3, 4}, rules.row(t, name), []int{2, 6, 8, 13})
	}
	cost := sheetOf(t, measured, "control", "version")
	for _, row := range sheetOf(t, comparison, "an overload control")[2:] {
		name := map[string]string{
			"Spillway's gate": "Spillway", "failsafe-go": "failsafe-go adaptive limiter", "go-zero": "go-zero shedder",
			"go-concurrency-limits": "go-concurrency-limits Gradient2", "aegis BBR": "aegis BBR",
		}[row[0]]
		quotes(t, comparison, row, []int{1, 2, 3}, cost.row(t, name), []int{2, 6, 5})
	}
	http := sheetOf(t, measured, "middleware", "version")
	for _, row := range sheetOf(t, comparison, "a middleware, told apart by address")[2:] {
		name := strings.ReplaceAll(strings.Split(row[0], ", ")[0], "failsafehttp", "failsafehttp rate limiter")
		quotes(t, comparison, row, []int{1, 2, 3, 4}, http.row(t, name), []int{2, 4, 5, 7})
	}
	overload := sheetOf(t, measured, "N", "service", "gate")
	for _, row := range sheetOf(t, comparison, "", "4 slots")[2:] {
		name := map[string]string{
			"no control": "none", "a semaphore that is told the number of slots": "semaphore of the slots", "Spillway, told nothing": "Spillway",
			"go-concurrency-limits: Gradient2": "gcl Gradient2", "Vegas": "gcl Vegas", "AIMD": "gcl AIMD", "failsafe-go": "failsafe-go",
		}[row[0]]
		for i, slots := range []string{"4", "16", "128"} {
			quotes(t, comparison, row, []int{1 + i}, overload.row(t, slots, "fixed", name), []int{8})
		}
	}
	redis := sheetOf(t, measured, "case", "limiter")
	cases := map[string][][]string{
		comparison:  {{"one key that 256 callers want"}, {"one key, 64 callers"}, {"100 000 keys, 64 callers"}, {"100 000 keys, one caller"}},
		"README.md": {{"one that all want", "256"}, {"one that all want", "64"}, {"100 000", "64"}, {"100 000", "1"}},
	}
	for page, begins := range map[string]string{comparison: "decisions shared through Redis, a second", "README.md": "keys"} {
		table := sheetOf(t, page, begins)
		for i, name := range []string{"hot key, 256 callers", "hot key, 64 callers", "100 000 keys, 64 callers", "100 000 keys, one caller"} {
			words := cases[page][i]
			at := slices.IndexFunc(redis, func(row []string) bool { return row[0] == name })
			if at < 0 {
				t.Fatalf("%s has no case %q", measured, name)
			}
			first := len(words)
			quotes(t, page, table.row(t, words...), []int{first, first + 1, first + 2},
				[]string{redis[at][3], redis[at+2][3], redis[at+3][3]}, []int{0, 1, 2}) // with leases, and redis_rate, two and three rows below
		}
	}
}
