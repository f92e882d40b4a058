package pumpkin

import "time"

// Status is a look at a Pumpkin, for the debug view and metrics. All counts are since New.
type Status struct {
	Epoch string `json:"epoch"`
	Rev   uint64 `json:"rev"`
	// Active is what is in force, in the document's order.
	Active []ActiveItem `json:"active"`
	// Polls counts documents answered in full, NotModified those answered 304.
	Polls       uint64 `json:"polls"`
	NotModified uint64 `json:"not_modified"`
	// Writes counts writes that were made, changing something or not.
	Writes uint64 `json:"writes"`
	// AdminFailures counts requests with no or a wrong token.
	AdminFailures uint64 `json:"admin_failures"`
}

// ActiveItem is an item in force, in brief.
type ActiveItem struct {
	ID       string             `json:"id"`
	Severity Severity           `json:"severity"`
	Features map[string]float64 `json:"features"` // the share of clients for which each is off
	// ExpiresIn is the time left, in seconds.
	ExpiresIn float64 `json:"expires_in"`
}

// Status returns what is in force and what was counted. It takes no lock, so the counts may be a request apart.
func (p *Pumpkin) Status() Status {
	b, now := p.current.Load().board, time.Now()
	s := Status{
		Epoch: b.epoch, Rev: b.rev, Active: make([]ActiveItem, len(b.held)),
		Polls: p.polls.Load(), NotModified: p.notModified.Load(), Writes: p.writes.Load(),
		AdminFailures: p.guard.failures.Load(),
	}
	for i, h := range b.held {
		off := make(map[string]float64, len(h.notice.Features))
		for name, f := range h.notice.Features {
			off[name] = f.Off
		}
		s.Active[i] = ActiveItem{
			ID: h.notice.ID, Severity: h.notice.Severity, Features: off,
			ExpiresIn: max(0, h.expires.Sub(now).Seconds()),
		}
	}
	return s
}
