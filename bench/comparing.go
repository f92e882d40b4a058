package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spillway-go/spillway/bench/internal/compare"
	"github.com/spillway-go/spillway/bench/internal/results"
)

func compareCommand(_ context.Context, args []string, out, log io.Writer) (int, error) {
	f := flags("compare")
	strict := f.Bool("strict", false, "end with 1 when anything got worse")
	if err := parse(f, args, 2); err != nil {
		return exitUsage, err
	}
	if f.NArg() != 2 {
		return exitUsage, usagef("compare needs two result files: bench compare A.json B.json")
	}
	a, err := results.Read(f.Arg(0))
	if err != nil {
		return exitUsage, usage{err}
	}
	b, err := results.Read(f.Arg(1))
	if err != nil {
		return exitUsage, usage{err}
	}
	rows := compare.Rows(a.Runs, b.Runs)
	if len(rows) == 0 {
		return exitInvalid, fmt.Errorf("bench: the files have no scenario, arm and level in common")
	}
	if err := compare.Print(out, rows); err != nil {
		return exitInvalid, err
	}
	for _, r := range rows {
		if *strict && r.Verdict == "worse" {
			return exitFail, nil
		}
	}
	return exitPass, nil
}
