package load

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// ChildArg is the one argument that makes a program a load generator: a main that finds it hands over to Child. It is no
// flag for people.
const ChildArg = "-load-child"

// Child is the child's whole life: it reads a Plan from stdin, plays it, writes the Report to stdout and returns the exit
// code. When stdin ends, its parent is gone or wants no more, and it stops.
func Child(stdin io.Reader, stdout, stderr io.Writer) int {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		fmt.Fprintln(stderr, "load: no plan on standard input:", err)
		return 2
	}
	var p Plan
	if err := json.Unmarshal(line, &p); err != nil {
		fmt.Fprintln(stderr, "load: the plan is not valid JSON:", err)
		return 2
	}
	p = p.withDefaults()
	if err := p.validate(); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, in)
		cancel()
	}()
	if err := json.NewEncoder(stdout).Encode(p.report(fire(ctx, p, p.tcp))); err != nil {
		return 1
	}
	return 0
}

// Run plays p in a child process, which is this very program started again with ChildArg, and returns its report. When
// ctx ends the child is stopped and the error is ctx's.
func Run(ctx context.Context, p Plan) (Report, error) {
	p = p.withDefaults()
	if err := p.validate(); err != nil {
		return Report{}, err
	}
	plan, err := json.Marshal(p)
	if err != nil {
		return Report{}, fmt.Errorf("load: encode the plan: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return Report{}, fmt.Errorf("load: find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, ChildArg)
	stdin, err := cmd.StdinPipe() // stays open while the child runs: its end is the child's end
	if err != nil {
		return Report{}, fmt.Errorf("load: open the child's input: %w", err)
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return Report{}, fmt.Errorf("load: start the child: %w", err)
	}
	stdin.Write(append(plan, '\n')) // if this fails the child says so, and Wait tells
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return Report{}, ctx.Err()
		}
		return Report{}, fmt.Errorf("load: the child failed: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	var r Report
	if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil {
		return Report{}, fmt.Errorf("load: read the child's report: %w", err)
	}
	return r, nil
}
