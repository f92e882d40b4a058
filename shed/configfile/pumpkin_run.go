package configfile

import (
	"fmt"
	"log/slog"
	"time"

	banner "github.com/spillway-go/spillway/pumpkin"

	"github.com/spillway-go/spillway/limits/redisstore"
	"github.com/spillway-go/spillway/pumpkin/redispumpkin"
	"github.com/spillway-go/spillway/shed"
)

// bannerTimeout is how long one question about the banner may take. No request waits for it.
const bannerTimeout = 250 * time.Millisecond

// RunPumpkin shares p with other instances and lets automation raise and lower its items, as far as the file says so. Call it
// before p serves; status is the Shedder's, from which automation learns how things are. What it returns ends all that, and is
// called before p is closed; it is never nil. A Redis that does not answer is no error. Log is told when that begins and ends;
// nil means slog.Default.
func (c *Config) RunPumpkin(p *banner.Pumpkin, status func() shed.Status, log *slog.Logger) (end func(), err error) {
	var ends []func()
	end = func() {
		for i := range ends {
			ends[len(ends)-1-i]()
		}
	}
	defer func() {
		if err != nil {
			end()
			end = func() {}
		}
	}()
	auto := banner.AutoConfig{Rules: c.Pumpkin.Auto, Signals: Signals(status)}
	if r := c.Pumpkin.Redis; r.URL != "" {
		options := redisstore.Options{Timeout: bannerTimeout, PoolSize: 4}
		if options.Password, err = passwordIn(r.PasswordFile); err != nil {
			return end, fmt.Errorf("pumpkin.redis.password_file: %w", err)
		}
		client, err := redisstore.Open(r.URL, options)
		if err != nil {
			return end, err
		}
		ends = append(ends, func() { client.Close() })
		shared, err := redispumpkin.Join(p, redispumpkin.Config{
			Client: client, Namespace: r.Namespace, SnapshotFile: r.SnapshotFile, Logger: log,
		})
		if err != nil {
			return end, err
		}
		ends = append(ends, shared.Close)
		auto.Quorum = shared
	}
	if len(auto.Rules) > 0 {
		a, err := banner.NewAuto(p, auto)
		if err != nil {
			return end, err
		}
		ends = append(ends, a.Close)
	}
	return end, nil
}

// shedOver is over how many looks the share of requests that were turned away is taken, and shedLeast how many requests there must
// have been for it to mean anything.
const (
	shedOver  = 10
	shedLeast = 10
)

// Signals returns what automation goes by, for pumpkin.AutoConfig.Signals, to be called once a second: pressure, the total of
// health; shed, the share of requests that were turned away for want of room in the last ten seconds, features that are off and
// quotas not counted; queue, how full the waiting line is; and the pressure of each signal of health by its name. A signal that
// health does not know is left out. It must not be called from two goroutines at once.
func Signals(status func() shed.Status) func() map[string]float64 {
	type counted struct{ turned, all int64 }
	var past []counted
	return func() map[string]float64 {
		s := status()
		signals := map[string]float64{}
		for _, r := range s.Health.Signals {
			if r.State.Known() {
				signals[r.Signal] = r.Pressure
			}
		}
		if s.Health.State.Known() {
			signals[signalPressure] = s.Health.Pressure
		}
		if s.QueueCapacity > 0 {
			signals[signalQueue] = min(1, float64(s.Waiting)/float64(s.QueueCapacity))
		}
		var now counted
		for _, reason := range []shed.Reason{shed.Overloaded, shed.QueueFull, shed.WaitExpired, shed.Displaced, shed.Deadline} {
			now.turned += s.Refused[reason]
		}
		now.all = now.turned + s.Admitted
		past = append(past, now)
		past = past[max(0, len(past)-1-shedOver):]
		signals[signalShed] = 0
		if all := now.all - past[0].all; all >= shedLeast {
			signals[signalShed] = float64(now.turned-past[0].turned) / float64(all)
		}
		return signals
	}
}
