package pumpkin

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// gateHandler is a slog.Handler that blocks on every record until the gate opens.
type gateHandler struct{ gate chan struct{} }

func (gateHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h gateHandler) Handle(context.Context, slog.Record) error {
	<-h.gate
	return nil
}
func (h gateHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h gateHandler) WithGroup(string) slog.Handler      { return h }

// A log that blocks shows two things at once: nobody else waits for it, since no lock is held over it, and Close does wait
// for the timer's goroutine that is in it.
func TestABlockedLogStopsNobodyAndCloseWaitsForTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		p := open(t, Config{Logger: slog.New(gateHandler{gate})})
		e := off("x", 1, "search")
		e.TTL = time.Minute
		go func() { _ = p.Put("test", "x", e) }()
		synctest.Wait()
		if !read(t, p).Active || !isOff(p, "search", "c") {
			t.Fatal("the write waits for the log")
		}
		time.Sleep(time.Minute) // the timer's goroutine blocks in the log too
		synctest.Wait()
		if read(t, p).Active {
			t.Fatal("the expiry waits for the log")
		}
		closed := make(chan struct{})
		go func() {
			p.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned while the timer's goroutine runs")
		default:
		}
		close(gate)
		<-closed
	})
}

func TestCloseStopsTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		put(t, p, "x", entry("x"))
		before := time.Now()
		p.Close()
		if waited := time.Since(before); waited != 0 {
			t.Errorf("Close took %v: it waits for an expiry", waited)
		}
	})
}

func TestPutKeepsNothingOfTheCallers(t *testing.T) {
	p := open(t, Config{})
	e := off("kept", 1, "search")
	put(t, p, "x", e)
	e.Message["en"], e.Features["search"] = "changed", Feature{}
	put(t, p, "y", entry("so that everything is rendered anew"))
	if words, _, off := p.FeatureOff("search", "c"); !off || words != "kept" {
		t.Errorf("%q, %v", words, off)
	}
}
