package configfile

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spillway-go/spillway/shed"
)

// A SIGHUP between Load and Run would end the process if nobody had asked for it.
func TestASignalBeforeRunIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	os.WriteFile(path, []byte(quota("5")+quiet), 0o600)
	told := make(chan Outcome)
	w := &Watch{Path: path, Report: func(o Outcome) { told <- o }}
	c, err := w.Load()
	if err != nil {
		t.Fatal(err)
	}
	if w.Shedder, err = shed.New(c.Shed); err != nil {
		t.Fatal(err)
	}
	defer w.Shedder.Close()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	if o := <-told; o.Err != nil || len(o.Changes) != 0 {
		t.Error(o)
	}
	stop()
	<-done
}
