package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spillway-go/spillway/bench/scenarios"
)

func listCommand(_ context.Context, args []string, out, log io.Writer) (int, error) {
	f := flags("list")
	short := f.Bool("short", false, "names only")
	if err := parse(f, args, 0); err != nil {
		return exitUsage, err
	}
	all, err := scenarios.All()
	if err != nil {
		return exitInvalid, err
	}
	for _, s := range all {
		if *short {
			fmt.Fprintln(out, s.ID)
			continue
		}
		fmt.Fprintf(out, "%s\n    %s\n", s.ID, s.About)
		for _, c := range s.Pass {
			what := "must hold"
			switch {
			case c.Control:
				what = "control"
			case c.Pending != "":
				what = "pending: " + c.Pending
			}
			fmt.Fprintf(out, "      %-42s %s/%s  (%s)\n", c.Name, c.Arm, c.Metric, what)
		}
	}
	return exitPass, nil
}
