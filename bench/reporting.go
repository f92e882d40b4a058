package main

import (
	"context"
	"io"
	"slices"

	"github.com/spillway-go/spillway/bench/internal/results"
)

func reportCommand(_ context.Context, args []string, out, log io.Writer) (int, error) {
	var o outputs
	f := flags("report")
	o.flags(f)
	if err := parse(f, args, -1); err != nil {
		return exitUsage, err
	}
	if f.NArg() == 0 {
		return exitUsage, usagef("report needs a result file: bench report -html FILE RESULT.json")
	}
	all := &results.File{Command: "report"}
	for i, name := range f.Args() {
		one, err := results.Read(name)
		if err != nil {
			return exitUsage, usage{err}
		}
		if i == 0 {
			all = one
			continue
		}
		all.Runs, all.Verdicts = append(all.Runs, one.Runs...), append(all.Verdicts, one.Verdicts...)
		all.Agreements = append(all.Agreements, one.Agreements...)
		all.Partial = all.Partial || one.Partial
		if all.Env == nil {
			all.Env = one.Env
		}
	}
	all.Runs = slices.Clip(all.Runs)
	return conclude(all, &o, out)
}
