package telemetry

import "github.com/spillway-go/spillway/pumpkin"

// What a pumpkin's status tells.
var (
	itemsFamily         = gauge("spillway_pumpkin_items", "Items that the public sees, by severity and by who put them there.", "severity", "origin")
	scheduledFamily     = gauge("spillway_pumpkin_scheduled", "Items that wait for their start.")
	endingSoonFamily    = gauge("spillway_pumpkin_ending_soon", "Items of which four fifths of the time are over.")
	byFileFamily        = gauge("spillway_pumpkin_by_file", "1 while the break-glass file says what the public sees, else 0.")
	unsharedFamily      = gauge("spillway_pumpkin_unshared", "Writes that the shared store does not have yet.")
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
	r.set(pollsFamily, float64(s.Polls), "full")
	r.set(pollsFamily, float64(s.NotModified), "not_modified")
	r.set(writesFamily, float64(s.Writes))
	r.set(adminFailuresFamily, float64(s.AdminFailures))
	r.set(auditFailuresFamily, float64(s.AuditFailures))
}
