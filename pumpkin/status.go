package pumpkin

import "time"

// Status is a look at a Pumpkin, for the debug view and metrics. All counts are since New.
type Status struct {
	Epoch string `json:"epoch"`
	Rev   uint64 `json:"rev"`
	// Active is what the public sees, in the document's order.
	Active []ActiveItem `json:"active"`
	// Scheduled counts items that wait for their start, EndingSoon those of which four fifths of the time are over.
	Scheduled  int `json:"scheduled"`
	EndingSoon int `json:"ending_soon"`
	// Unshared counts writes that the shared store does not have yet.
	Unshared int `json:"unshared"`
	// Store tells how the sharing goes; nil without a Store, or where it does not tell.
	Store *StoreReport `json:"store,omitempty"`
	// Auto tells how automation's rules stand; nil without them.
	Auto []AutoStatus `json:"auto,omitempty"`
	// ByFile says that the break-glass file rules.
	ByFile bool `json:"by_file"`
	// ForceOff counts the ids that automation is kept away from.
	ForceOff int `json:"force_off"`
	// Polls counts documents answered in full, NotModified those answered 304.
	Polls       uint64 `json:"polls"`
	NotModified uint64 `json:"not_modified"`
	// Writes counts writes that were made, changing something or not.
	Writes uint64 `json:"writes"`
	// AdminFailures counts requests with no or a wrong token, for a wrong name or from another origin.
	AdminFailures uint64 `json:"admin_failures"`
	// AuditFailures counts records that the audit file did not take.
	AuditFailures uint64 `json:"audit_failures"`
}

// ActiveItem is an item in force, in brief.
type ActiveItem struct {
	ID       string             `json:"id"`
	Severity Severity           `json:"severity"`
	Origin   Origin             `json:"origin"`
	Features map[string]float64 `json:"features"` // the share of clients for which each is off
	// ExpiresIn is the time left, in seconds; 0 for what lasts as long as the break-glass file.
	ExpiresIn float64 `json:"expires_in"`
}

// Status returns what is in force and what was counted. It takes no lock, so the counts may be a request apart.
func (p *Pumpkin) Status() Status {
	b, now := p.current.Load().board, time.Now()
	s := Status{
		Epoch: b.epoch, Rev: b.rev, Active: make([]ActiveItem, len(b.shown())),
		Scheduled: len(b.waiting), ByFile: b.over != nil, Unshared: b.locals, ForceOff: len(p.liveHolds(b)),
		Polls: p.polls.Load(), NotModified: p.notModified.Load(), Writes: p.writes.Load(),
		AdminFailures: p.guard.failures.Load(), AuditFailures: p.audit.failed.Load(),
	}
	if store := p.store.Load(); store != nil {
		if r, ok := (*store).(Reporter); ok {
			report := r.Report()
			s.Store = &report
		}
	}
	if a := p.auto.Load(); a != nil {
		s.Auto = a.Status()
	}
	for _, h := range b.held {
		if warn := endsSoon(h.since(), h.expires); !warn.IsZero() && !now.Before(warn) {
			s.EndingSoon++
		}
	}
	for i, h := range b.shown() {
		off := make(map[string]float64, len(h.notice.Features))
		for name, f := range h.notice.Features {
			off[name] = f.Off
		}
		s.Active[i] = ActiveItem{
			ID: h.notice.ID, Severity: h.notice.Severity, Origin: h.item().Origin, Features: off,
			ExpiresIn: max(0, h.expires.Sub(now).Seconds()),
		}
	}
	return s
}
