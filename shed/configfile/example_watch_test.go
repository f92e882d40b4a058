package configfile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// A program that follows its file: it starts with what Load returns, and Run takes over what is written there later. The example
// hurries it with a SIGHUP of its own.
func ExampleWatch() {
	folder, err := os.MkdirTemp("", "spillway")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "service.yaml")
	write := func(capacity string) {
		text := "limits: [{name: per-client, token_bucket: {capacity: " + capacity + ", refill: 5/s}}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			fmt.Println(err)
		}
	}
	write("20")

	hangUp, reported := make(chan os.Signal), make(chan configfile.Outcome)
	watch := &configfile.Watch{Path: path, HangUp: hangUp, Report: func(o configfile.Outcome) { reported <- o }}
	c, err := watch.Load()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := shed.New(c.Shed)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	watch.Shedder = s
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go watch.Run(ctx)

	write("30")
	hangUp <- os.Interrupt
	for _, change := range (<-reported).Changes {
		fmt.Println(change)
	}
	// Output:
	// limit per-client: rule token_bucket: {capacity: 20, refill: 5/s} -> token_bucket: {capacity: 30, refill: 5/s}
}
