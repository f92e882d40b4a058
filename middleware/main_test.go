package middleware_test

import (
	"log/slog"
	"os"
	"testing"
)

// TestMain keeps the warning about API keys that are only labels out of the output: most tests here take them for that.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
