package health

import "time"

// Thresholds map a measured value to a pressure: 0 up to Low, 1 from High on, linear between.
type Thresholds struct {
	Low, High float64
}

// Config chooses what is watched. The zero value watches the process's own CPU, 0.75 to 0.95 of what it may use.
type Config struct {
	// CPU bounds own CPU time ÷ (elapsed time × cores this process may use); the zero value means {0.75, 0.95}.
	CPU Thresholds
	// WarmUp is how long after start health only observes; zero means 60 s, negative none.
	WarmUp time.Duration
	// Off switches health off: no goroutine, no pressure.
	Off bool
}
