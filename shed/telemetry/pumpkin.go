package telemetry

import "github.com/spillway-go/spillway/pumpkin"

// What a pumpkin's status tells.
var (
	itemsFamily         = gauge("spillway_pumpkin_items", "Items that the public sees, by severity and by who put them there.", "severity", "origin")
	scheduledFamily     = gauge("spillway_pumpkin_scheduled", "Items that wait for their start.")
	endingSoonFamily    = gauge("spillway_pumpkin_ending_soon", "Items of which four fifths of the time are over.")
	byFileFamily        = gauge("spillway_pumpkin_by_file", "1 while the break-glass file says what the public sees, else 0.")
	unsharedFamily      = gauge("spillway_pumpkin_unshared", "Writes that the shared store does not have yet.")
	sharedFamily        = gauge("spillway_pumpkin_store_reachable", "1 while the shared store of the banner can be asked, else 0; missing without one.")
	shareFailuresFamily = counter("spillway_pumpkin_store_failures_total", "Questions to the shared store of the banner that had no answer.")
	reseededFamily      = counter("spillway_pumpkin_store_reseeded_total", "States that were stored again because the shared store had lost something, or instances had written apart.")
	autoShareFamily     = gauge("spillway_pumpkin_auto_share", "How much of what its text switches off a rule of automation has switched off: 1 up, 0.5 and 0.25 coming down, 0 down.", "rule")
	autoLatchedFamily   = gauge("spillway_pumpkin_auto_latched", "1 while a rule of automation has gone up too often and waits for a person, else 0.", "rule")
	autoVotesFamily     = gauge("spillway_pumpkin_auto_votes", "Instances that want the item of a rule up.", "rule")
	autoChangesFamily   = counter("spillway_pumpkin_auto_changes_total", "Items that this instance has raised and lowered by itself.", "rule", "change")
	pollsFamily         = counter("spillway_pumpkin_polls_total", "Polls that were answered, in full or with 304.", "answer")
	writesFamily        = counter("spillway_pumpkin_writes_total", "Writes that were made, changing something or not.")
	adminFailuresFamily = counter("spillway_pumpkin_admin_failures_total", "Admin requests with no or a wrong token, for a wrong name or from another origin.")
	auditFailuresFamily = counter("spillway_pumpkin_audit_failures_total", "Records that the audit file did not take.")
)

// WatchPumpkin makes p the pumpkin whose status is collected; pumpkin.Pumpkin is one. Until then its metrics are missing.
func (m *Metrics) WatchPumpkin(p interface{ Status() pumpkin.Status }) { m.pumpkin.Store(&p) }

// pumpkin writes what the status of a pumpkin says.
func (r report) pumpkin(s pumpkin.Status) {
	type kind struct{ severity, origin string }
	items := map[kind]int{}
	for _, it := range s.Active {
		items[kind{string(it.Severity), string(it.Origin)}]++
	}
	for k, n := range items {
		r.set(itemsFamily, float64(n), k.severity, k.origin)
	}
	r.set(scheduledFamily, float64(s.Scheduled))
	r.set(endingSoonFamily, float64(s.EndingSoon))
	r.set(byFileFamily, one(s.ByFile))
	r.set(unsharedFamily, float64(s.Unshared))
	if s.Store != nil {
		r.set(sharedFamily, one(s.Store.Reachable))
		r.set(shareFailuresFamily, float64(s.Store.Failures))
		r.set(reseededFamily, float64(s.Store.Reseeded))
	}
	for _, a := range s.Auto {
		r.set(autoShareFamily, a.Share, a.ID)
		r.set(autoLatchedFamily, one(a.Latched), a.ID)
		r.set(autoVotesFamily, float64(a.Up), a.ID)
		r.set(autoChangesFamily, float64(a.Raised), a.ID, "raised")
		r.set(autoChangesFamily, float64(a.Lowered), a.ID, "lowered")
	}
	r.set(pollsFamily, float64(s.Polls), "full")
	r.set(pollsFamily, float64(s.NotModified), "not_modified")
	r.set(writesFamily, float64(s.Writes))
	r.set(adminFailuresFamily, float64(s.AdminFailures))
	r.set(auditFailuresFamily, float64(s.AuditFailures))
}
