//go:build !unix

package stopwatch

import "time"

// processorTime is not known here; the caller then counts the time on the wall.
func processorTime() time.Duration { return 0 }
