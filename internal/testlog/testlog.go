// Package testlog is a log that a test can read while others write to it.
package testlog

import (
	"log/slog"
	"strings"
	"sync"
)

// Log collects what is logged. The zero value is empty and ready.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write takes what a logger writes.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String is what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger that writes here.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
