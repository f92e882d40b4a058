package shed

import (
	"slices"

	"github.com/spillway-go/spillway/limits"
)

// Counts reports whether some limit counts a unit, so that who could tell its amounts knows whether that is worth while.
func (s *Shedder) Counts(unit string) bool {
	return slices.ContainsFunc(s.current().rules, func(r *rule) bool { return r.Unit == unit })
}

// Flow returns what units of an admitted request have to pass through whose amount was not known when it was admitted: the
// bytes of a body without a length, the messages of a stream. It slows them down to what the limits on that unit allow;
// the refusals of limits that only watch cost nothing. It is nil if no limit counts the unit for this request. What passes
// a Flow is not part of a limit's numbers in Status.
func (s *Shedder) Flow(unit string, req Request) *limits.Flow {
	route := s.current().route(req.Route)
	var charges []limits.Charge
	for _, r := range route.rules {
		if r.Unit != unit || r.countsRequests() || !r.appliesTo(&req) {
			continue
		}
		if key, ok := r.key(route, &req); ok {
			charges = append(charges, limits.Charge{Policy: r.in(req.Plan), Key: key, Shadow: r.Shadow})
		}
	}
	if len(charges) == 0 {
		return nil
	}
	flow, err := limits.NewFlow(s.store, charges...)
	if err != nil { // only rules over time count other units than requests
		return nil
	}
	return flow
}
