package limits_test

import (
	"testing"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/limits/storetest"
)

func TestMemoryKeepsThePromisesOfAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) limits.Store { return newMemory(t, limits.MemoryConfig{}) })
}

// One lock and one small table instead of many: the same promises.
func TestSmallMemoryKeepsThePromisesOfAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) limits.Store { return newMemory(t, limits.MemoryConfig{MaxKeys: 2000}) })
}

func newMemory(t testing.TB, config limits.MemoryConfig) *limits.Memory {
	t.Helper()
	m, err := limits.NewMemory(config)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
