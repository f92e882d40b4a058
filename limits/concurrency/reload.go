package concurrency

// Configured is the Change that Reconfigure makes.
const Configured Change = "configured"

// Reconfigure puts cfg in the place of what New was given, and keeps what was learnt: the limit moves into the new bounds, the
// baseline stays, and another algorithm goes on from where the old one stood. A limit that is now fixed is its Initial; for
// the others Initial has no meaning any more. An error is one of New's, and then nothing has changed.
func (e *Estimator) Reconfigure(cfg Config) error {
	cfg, err := cfg.resolve()
	if err != nil || cfg == e.cfg {
		return err
	}
	before := e.cfg
	e.cfg = cfg
	if cfg.Algorithm != Fixed && before.Algorithm == cfg.Algorithm && before.Min == cfg.Min && before.Max == cfg.Max {
		return nil // another Initial alone
	}
	e.dip.abort(e)
	e.climb, e.burst, e.win, e.past = climb{}, burst{}, window{opened: e.now}, history{}
	limit := e.limit
	if cfg.Algorithm == Fixed {
		limit = cfg.Initial
	}
	start := cfg
	start.Initial = min(max(limit, cfg.Min), cfg.Max)
	if e.alg = newAlgorithm(start); e.alg == nil {
		limit = min(max(limit, cfg.Min), cfg.Max)
		if limit != e.limit {
			e.limit, e.change, e.changed = limit, Configured, e.now
		}
		return nil
	}
	e.set(limit, Configured)
	return nil
}
