package report

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string    `xml:"name,attr"`
	Class   string    `xml:"classname,attr"`
	Failure *junitWhy `xml:"failure"`
	Error   *junitWhy `xml:"error"`
	Skipped *junitWhy `xml:"skipped"`
}

type junitWhy struct {
	Message string `xml:"message,attr"`
}

// JUnit writes the verdicts as JUnit XML: a scenario is a suite, a criterion a case. Pending rows are skipped tests, invalid
// ones errors.
func JUnit(w io.Writer, f *results.File) error {
	var all junitSuites
	index := make(map[string]int)
	for i := range f.Verdicts {
		v := &f.Verdicts[i]
		n, ok := index[v.Scenario]
		if !ok {
			n = len(all.Suites)
			index[v.Scenario] = n
			all.Suites = append(all.Suites, junitSuite{Name: v.Scenario})
		}
		all.Suites[n].add(v)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", " ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(v *judge.Verdict) {
	c := junitCase{Name: v.Name, Class: v.Scenario + "." + v.Mode + "." + v.Arm}
	why := &junitWhy{fmt.Sprintf("%s %s, must be %s. %s", v.Metric, value(v.Value), Bounds(v), v.Note)}
	s.Tests++
	switch v.Status {
	case judge.Fail:
		c.Failure = why
		s.Failures++
	case judge.Invalid:
		c.Error = &junitWhy{v.Note}
		s.Errors++
	case judge.Pending:
		c.Skipped = &junitWhy{v.Note}
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// Markdown writes the verdicts as a table, the bad ones first.
func Markdown(w io.Writer, f *results.File) error {
	if _, err := fmt.Fprintf(w, "## bench %s\n\n| verdict | scenario | what must hold | arm | measured | bound |\n|---|---|---|---|---|---|\n", f.Command); err != nil {
		return err
	}
	for _, status := range []judge.Status{judge.Invalid, judge.Fail, judge.Pending, judge.Pass} {
		for i := range f.Verdicts {
			v := &f.Verdicts[i]
			if v.Status != status {
				continue
			}
			if _, err := fmt.Fprintf(w, "| %s | %s | %s | %s/%s | %s | %s |\n", v.Status, v.Scenario, v.Name, v.Mode, v.Arm, value(v.Value), Bounds(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// GoBench writes one line for each run in the format of Go's benchmarks, so that benchstat can compare two of them.
func GoBench(w io.Writer, f *results.File) error {
	for _, r := range f.Runs {
		s := r.Sum(measure.Pick{})
		seconds := max(s.Length.Duration().Seconds(), 1e-9)
		_, err := fmt.Fprintf(w, "BenchmarkScenario/%s/%s/%s/level=%.3g 1 %.1f goodput/s %.4f success %.3f p50-ms %.3f p99-ms\n", r.Scenario, r.Mode, r.Arm, r.Level,
			float64(s.Counts[measure.OK])/seconds, s.Success(), ms(s.Admitted.Quantile(.5)), ms(s.Admitted.Quantile(.99)))
		if err != nil {
			return err
		}
	}
	return nil
}
