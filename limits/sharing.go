package limits

// Sharing says how processes share a balance that a store keeps for all of them. Stores in this process have nobody to share
// with, so it is for those that keep balances elsewhere.
type Sharing uint8

// The choices. The zero value leaves it to the store's own default.
const (
	SharedAsTheStore Sharing = iota
	SharedExactly            // the store is asked for each decision
	SharedByLease            // a process takes some ahead, and spends that without asking
	SharedAsync              // a process decides by what it last heard, and tells the store afterwards
)

// String returns the word of the configuration file, and "default" for the zero value.
func (s Sharing) String() string {
	switch s {
	case SharedAsTheStore:
		return "default"
	case SharedExactly:
		return "exact"
	case SharedByLease:
		return "lease"
	case SharedAsync:
		return "async"
	}
	return "unknown"
}

// Shared chooses how processes share the policy's balances. A policy that is Strict is always SharedExactly.
func Shared(s Sharing) Option { return func(p *Policy) { p.sharing = s } }

// Sharing returns what was chosen with Shared; SharedExactly if the policy is strict.
func (p *Policy) Sharing() Sharing {
	if p.strict {
		return SharedExactly
	}
	return p.sharing
}
