package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spillway-go/spillway/bench/internal/gameday"
	"github.com/spillway-go/spillway/bench/internal/judge"
)

// gamedayCommand plays a bad day against two gateways, and says what their users saw.
func gamedayCommand(ctx context.Context, args []string, out, log io.Writer) (int, error) {
	f := flags("gameday")
	quick := f.Bool("quick", false, "acts as short as their verdicts allow: under 4 minutes instead of under 15")
	var html outFile
	f.Var(&html, "html", "write a report with the timeline to this `file`")
	keep := f.Bool("keep", false, "keep the folder with the configuration, the keys and what every program said")
	only := f.String("acts", "", "play only these acts, as `names` with commas between them")
	soak := f.Duration("soak", 0, "instead of the acts, this long of ordinary work with gateways built with the race detector: does anything grow?")
	if err := parse(f, args, 0); err != nil {
		return 0, err
	}
	o := gameday.Options{Quick: *quick, Keep: *keep, Soak: *soak, Log: out}
	if *only != "" {
		o.Acts = strings.Split(*only, ",")
	}
	report, err := gameday.Run(ctx, o)
	if err != nil {
		if gameday.Usage(err) {
			return 0, usage{err}
		}
		fmt.Fprintln(log, err) // what cannot be started has failed; the machine has nothing to do with it
		return exitFail, nil
	}
	passed, failed, invalid := report.Count(judge.Pass), report.Count(judge.Fail), report.Count(judge.Invalid)
	fmt.Fprintln(out)
	for _, line := range report.Trouble() {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "%d verdicts passed, %d failed, %d invalid\n", passed, failed, invalid)
	if report.Partial {
		fmt.Fprintln(out, "PARTIAL: broken off; this is what was seen until then")
	}
	if html != "" {
		var page bytes.Buffer
		if err := report.HTML(&page); err != nil {
			return 0, fmt.Errorf("bench: %w", err)
		}
		if err := html.write(os.O_TRUNC, page.Bytes()); err != nil {
			return 0, fmt.Errorf("bench: %w", err)
		}
	}
	switch {
	case failed > 0:
		return exitFail, nil
	case invalid > 0 || report.Partial:
		return exitInvalid, nil
	}
	return exitPass, nil
}
