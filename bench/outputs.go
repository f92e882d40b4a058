package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
	"github.com/spillway-go/spillway/bench/internal/report"
	"github.com/spillway-go/spillway/bench/internal/results"
)

// outputs are the files that every command can write its results to.
type outputs struct {
	json, html, junit, markdown, gobench outFile
}

// outFile is the flag of a file that is written when everything is done; empty means none, and - where the flag says so the standard output.
type outFile string

// String and Set make it a flag.
func (o *outFile) String() string        { return string(*o) }
func (o *outFile) Set(name string) error { *o = outFile(name); return nil }

// try finds out whether the file can be written, and leaves what is in it.
func (o *outFile) try() error {
	if *o == "" || *o == "-" {
		return nil
	}
	_, missing := os.Stat(string(*o))
	w, err := os.OpenFile(string(*o), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if missing != nil {
		os.Remove(string(*o))
	}
	return w.Close()
}

func (o *outputs) flags(f *flag.FlagSet) {
	f.Var(&o.json, "json", "write the result as JSON to this `file`; - is the standard output")
	f.Var(&o.html, "html", "write a report to this `file`: one page that needs no network")
	f.Var(&o.junit, "junit", "write the verdicts as JUnit XML to this `file`")
	f.Var(&o.markdown, "markdown", "add the verdicts as a table in Markdown to this `file`; $GITHUB_STEP_SUMMARY if that is set")
	f.Var(&o.gobench, "gobench", "write the runs as lines that benchstat reads to this `file`")
}

// write writes all files that were asked for.
func (o *outputs) write(f *results.File, out io.Writer) error {
	if o.json != "" {
		if err := f.Write(string(o.json), out); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	for _, file := range []struct {
		name  outFile
		flag  int
		write func(io.Writer, *results.File) error
	}{
		{o.html, os.O_TRUNC, report.HTML}, {o.junit, os.O_TRUNC, report.JUnit}, {o.gobench, os.O_TRUNC, report.GoBench},
		{cmp.Or(o.markdown, outFile(os.Getenv("GITHUB_STEP_SUMMARY"))), os.O_APPEND, report.Markdown},
	} {
		if file.name == "" {
			continue
		}
		var b bytes.Buffer
		if err := file.write(&b, f); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		if err := file.name.write(file.flag, b.Bytes()); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return nil
}

// write writes the file: flag says whether anew or at its end.
func (o outFile) write(flag int, text []byte) error {
	w, err := os.OpenFile(string(o), os.O_CREATE|os.O_WRONLY|flag, 0o644)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		w.Close()
		return err
	}
	return w.Close()
}

// conclude prints the verdicts, writes the files and returns the exit code.
func conclude(f *results.File, o *outputs, out io.Writer) (int, error) {
	if o.json != "-" {
		printRuns(out, f.Runs)
		printVerdicts(out, f.Verdicts)
		printAgreements(out, f.Agreements)
	}
	if err := o.write(f, out); err != nil {
		return exitInvalid, err
	}
	if f.Partial {
		fmt.Fprintln(out, "PARTIAL: broken off; this is what was measured until then")
		return max(f.Exit(), exitInvalid), nil
	}
	return f.Exit(), nil
}

// printVerdicts prints the table of verdicts, the bad ones with what to try.
func printVerdicts(w io.Writer, all []judge.Verdict) {
	if len(all) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, v := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s %.4g\t%s\n", v.Status, v.Scenario, v.Name, v.Mode+"/"+v.Arm, v.Metric, float64(v.Value), report.Bounds(&v))
	}
	t.Flush()
	for _, v := range all {
		if v.Note != "" && v.Status != judge.Pending {
			fmt.Fprintf(w, "%s %s: %s: %s\n", v.Status, v.Scenario, v.Name, v.Note)
		} else if v.Status == judge.Fail && v.Try != "" {
			fmt.Fprintf(w, "%s %s: %s: %s %s\n", v.Status, v.Scenario, v.Name, v.Plain, v.Try)
		}
	}
}

// printAgreements prints how the forms of each scenario agree.
func printAgreements(w io.Writer, all []results.Agreement) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "The same seed in virtual time, in process, and over sockets: goodput, and how many of the criteria about Spillway hold")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\tscenario\tlevel\tmargin\tsim\thandler\tsocket")
	for i := range all {
		a := &all[i]
		fmt.Fprintf(t, "%s\t%s\t%g\t%.2g", a.Status, a.Scenario, a.Level, float64(a.Margin))
		for _, f := range []*results.Form{a.Sim, a.Handler, a.Socket} {
			fmt.Fprintf(t, "\t%s", report.Form(f, a.Criteria))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// columns explains the table of runs, below each one and in the help.
const columns = `arm: who decides (none, static, spillway; target is a server of yours). level: offered load, in multiples of what the app can do; of a
target, of the highest -rate. ok: answered in time; late: too late for its client; shed: refused, 429 and 503 together; timeout: no answer.
goodput: what was ok, as a share of what was asked or, if that is less, of what the app can do. p50, p99: of what was admitted.
lag: how late the generator itself was; a run in which it matters is INVALID.
`

// printRuns prints one line for each run.
func printRuns(w io.Writer, runs []*measure.Run) {
	if len(runs) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tarm\tlevel\tseed\tasked\tok\tlate\tshed\ttimeout\terror\tgoodput\tp50\tp99\tlag p99\t")
	for _, r := range runs {
		s := r.Sum(measure.Pick{})
		c := s.Counts
		fmt.Fprintf(t, "%s\t%s\t%.3g\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.3f\t%.1fms\t%.1fms\t%.1fms\t\n", r.Scenario, r.Mode+"/"+r.Arm, r.Level, r.Seed,
			s.Asked, c[measure.OK], c[measure.Late], c[measure.Shed], c[measure.Timeout], c[measure.Failed],
			judge.Goodput(r, measure.Pick{}), msOf(s.Admitted.Quantile(.5)), msOf(s.Admitted.Quantile(.99)), msOf(r.Generator.LagP99.Duration()))
	}
	t.Flush()
	fmt.Fprint(w, columns)
	for _, r := range runs {
		if r.Invalid != "" {
			fmt.Fprintf(w, "INVALID %s %s: %s\n", r.Scenario, r.Mode+"/"+r.Arm, r.Invalid)
		}
	}
}

func msOf(d interface{ Microseconds() int64 }) float64 { return float64(d.Microseconds()) / 1000 }

// terminal tells whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
