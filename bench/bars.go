package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/bars"
)

// barsCommand plays the cases of package bars and writes their figures as a table.
func barsCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	f := flags("bars")
	seeds := f.Int("seeds", 9, "how many seeds each figure is the median of")
	only := f.String("only", "", "only cases whose name contains this, such as \"128 slots\"")
	day := f.Bool("day", false, "also a day of overload, which takes minutes")
	if err := parse(f, args, 0); err != nil {
		return exitUsage, err
	}
	if *seeds < 1 || *seeds > 100 {
		return exitUsage, usagef("-seeds %d is not from 1 to 100", *seeds)
	}
	code, played := exitPass, 0
	fmt.Fprintf(out, "| case | figure | bar | median of %d | lowest to highest | |\n|---|---|---|---|---|---|\n", *seeds)
	for _, c := range bars.Cases(*day) {
		if !strings.Contains(c.Name, *only) {
			continue
		}
		played++
		results, err := c.Play(ctx, *seeds)
		if err != nil {
			return exitInvalid, err
		}
		for _, r := range results {
			word := "PASS"
			if !r.Reached {
				word, code = "FAIL", exitFail
			}
			fmt.Fprintf(out, "| %s | %s | %s | %.4g | %.4g to %.4g | %s |\n", r.Case, r.Bar, bar(r), r.Median, r.Low, r.High, word)
		}
	}
	if played == 0 {
		return exitUsage, usagef("-only: there is no case with %q in its name", *only)
	}
	return code, nil
}

// bar writes the bounds of r.
func bar(r bars.Result) string {
	if r.Min > 0 {
		return fmt.Sprintf("≥ %g", r.Min)
	}
	return fmt.Sprintf("≤ %g", r.Max)
}
