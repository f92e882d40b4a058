package report

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/results"
	"github.com/spillway-go/spillway/bench/internal/sim"
	"github.com/spillway-go/spillway/bench/scenarios"
)

// file makes a result with runs of all shapes, and rows with names that try to break out.
func file(t *testing.T) *results.File {
	t.Helper()
	f := rows()
	f.Runs = runs(t)
	f.Runs[0].Invalid = "the generator <b>was</b> late"
	return f
}

// rows has one row of each status.
func rows() *results.File {
	f := &results.File{Command: "suite", Partial: true}
	one := judge.Number(1)
	for _, status := range []judge.Status{judge.Pass, judge.Fail, judge.Pending, judge.Invalid} {
		f.Verdicts = append(f.Verdicts, judge.Verdict{
			Scenario: "noisy", Name: "row </td><script>" + string(status), Arm: "spillway", Mode: "sim", Status: status, Min: &one, Note: "why & how",
		})
	}
	return f
}

// runs has a run over time and a sweep, small ones.
func runs(t *testing.T) (all []*measure.Run) {
	for _, name := range []string{"noisy", "sweep"} {
		s, err := scenarios.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Phases {
			s.Phases[i].For = 3 * time.Second
		}
		for _, level := range s.Levels {
			for _, arm := range s.Arms {
				run, err := sim.Run(t.Context(), sim.Config{Scenario: s, Arm: arm, Level: level, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, run)
			}
		}
	}
	return all
}

func TestThePageLoadsNothingAndIsComplete(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, file(t)); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if found := regexp.MustCompile(`(?i)<script|<link|<img|<iframe|@import|url\(|(src|href)="(https?:)?//|https?://`).FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, want := range []string{
		"INVALID", "PENDING", "PARTIAL", "the generator &lt;b&gt;was&lt;/b&gt; late", "Answered in time", "p99 of the admitted", "latency by outcome",
		"Jain", `class="shade"`, "Goodput against offered load", "Lag p99",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Index(page, "<table>") > strings.Index(page, "<svg") {
		t.Error("the verdicts do not come first")
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "+Inf") {
		t.Error("the page has numbers that are none")
	}
}

func TestThePageBeginsWithWhatIsBadAndHoldsTheFormsTogether(t *testing.T) {
	f := rows()
	f.Verdicts = append(f.Verdicts, judge.Verdict{Scenario: "step", Mode: "sim", Status: judge.Pass}, judge.Verdict{Scenario: "noisy", Mode: "socket", Status: judge.Pass})
	f.Agreements = []results.Agreement{{
		Scenario: "noisy", Level: 1, Margin: 0.1, Criteria: 3, Status: judge.Fail,
		Sim: &results.Form{Goodput: 0.99, Met: 3}, Handler: &results.Form{Invalid: "late"},
	}}
	var b bytes.Buffer
	if err := HTML(&b, f); err != nil {
		t.Fatal(err)
	}
	page, last := b.String(), 0
	for _, want := range []string{
		`"status fail">FAIL`, `"status invalid">INVALID`, `"status pending">PENDING`, `"status pass">PASS`, "Three forms", "0.990 · 3 of 3", ">INVALID</td>", "not played",
		`id="noisy-sim"`, `id="noisy-socket"`, `id="step-sim"`,
	} {
		i := strings.Index(page[last:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or too early", want)
		}
		last += i
	}
}

func TestJUnitTellsFailuresErrorsAndSkippedApart(t *testing.T) {
	var b bytes.Buffer
	if err := JUnit(&b, rows()); err != nil {
		t.Fatal(err)
	}
	var back junitSuites
	if err := xml.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if s := back.Suites[0]; s.Tests != 4 || s.Failures != 1 || s.Errors != 1 || s.Skipped != 1 || s.Cases[1].Failure == nil {
		t.Errorf("%+v", s)
	}
}

func TestTheMarkdownTableBeginsWithWhatIsBad(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, rows()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 8 || !strings.HasPrefix(lines[4], "| INVALID") || !strings.HasPrefix(lines[5], "| FAIL") {
		t.Errorf("%s", b.String())
	}
}

func TestBenchstatFindsItsLines(t *testing.T) {
	var b bytes.Buffer
	if err := GoBench(&b, file(t)); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^BenchmarkScenario/\S+ 1 [\d.]+ goodput/s [\d.]+ success [\d.]+ p50-ms [\d.]+ p99-ms$`)
	for l := range strings.Lines(b.String()) {
		if !line.MatchString(strings.TrimSpace(l)) {
			t.Errorf("%q", l)
		}
	}
}

func TestChartsOfNothingAreNothing(t *testing.T) {
	if c := charts(nil); c != nil {
		t.Errorf("%v", c)
	}
	empty := &measure.Run{Scenario: "x", Arm: "none", Phases: []measure.Phase{{}}}
	if c := charts([]*measure.Run{empty}); c != nil {
		t.Errorf("%v", c)
	}
}
