package redispumpkin

import (
	"time"

	"github.com/spillway-go/spillway/pumpkin"
)

// Report tells how the sharing goes. It is pumpkin.Reporter's, so that it is in pumpkin.Status.
func (s *Store) Report() pumpkin.StoreReport {
	r := pumpkin.StoreReport{
		Reachable: true, Seq: s.p.State().Seq, Failures: s.failures.Load(), Reseeded: s.reseeded.Load(),
	}
	if t := s.trouble.Load(); t != nil {
		r.Reachable, r.Trouble, r.TroubleFor = false, t.err.Error(), time.Since(t.since).Seconds()
	}
	s.ballot.mu.Lock()
	defer s.ballot.mu.Unlock()
	if time.Since(s.ballot.at) <= ballotTTL {
		r.Instances = len(s.ballot.all)
	}
	return r
}
