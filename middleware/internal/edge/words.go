package edge

import (
	"strings"

	"github.com/spillway-go/spillway/shed"
)

// detail says what happened and what to do, in words that fit every client that meets this refusal.
func (a *answers) detail(r *shed.Rejection) string {
	const again = " Nothing was done for this request; try again after the time in Retry-After."
	switch r.Reason {
	case shed.OverLimit:
		return "The quota of the rule " + quoted(r.Rule) + " is used up. Wait for the time in Retry-After, then try again."
	case shed.CostTooLarge:
		return "This request weighs more than the rule " + quoted(r.Rule) + " ever allows at once. Waiting does not help; make it smaller or split it."
	case shed.InFlight:
		return "Too many of your requests are running at once under the rule " + quoted(r.Rule) + ". Let some of them end, then try again."
	case shed.NoIdentity:
		s := "It cannot be told who is asking or from where, and this service has to know."
		if a.keyHeader != "" {
			s += " Send an API key in the field " + a.keyHeader + "."
		}
		return s + " A proxy on the way has to pass your address on."
	case shed.FeatureOff:
		if r.Words != "" {
			return r.Words
		}
		return "This feature is switched off at the moment."
	case shed.QueueFull:
		return "The service is busy and so many are waiting already that there is no place left." + again
	case shed.WaitExpired:
		return "The service is busy and no place became free in the time that a request may wait." + again
	case shed.Displaced:
		return "The service is busy and more important work took this request's place." + again
	case shed.Deadline:
		return "The service could not begin with this request before its deadline." + again
	case shed.StoreUnavailable:
		return "The service cannot look up quotas at the moment and lets nobody pass without." + again
	case shed.BodyTooSlow:
		return "The body of the request came too slowly. Send it without pauses; waiting before that does not help."
	case Closed:
		return "This instance of the service is shutting down." + again
	}
	return "The service has more work than it can do at the moment." + again
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `'`) + `"` }
