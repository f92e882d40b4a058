package limits

import "time"

// OnFailure says what becomes of a charge while the store that keeps its balance cannot decide. Stores in this process
// never fail, so it is for those that keep balances elsewhere.
type OnFailure uint8

// The choices. The zero value leaves it to the store's own default.
const (
	AsTheStore OnFailure = iota
	Local                // decide here: the quota divided by the number of instances
	Open                 // allow
	Closed               // refuse, with an UnavailableError
)

// String returns the word of the configuration file, and "default" for the zero value.
func (f OnFailure) String() string {
	switch f {
	case AsTheStore:
		return "default"
	case Local:
		return "local"
	case Open:
		return "open"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// Option is something about a policy beside its rule.
type Option func(*Policy)

// WhenStoreFails chooses what becomes of the policy's charges while the store cannot decide.
func WhenStoreFails(f OnFailure) Option { return func(p *Policy) { p.onFailure = f } }

// Strict marks a quota that must never be exceeded, as money must not: while the store cannot decide it is Closed, whatever
// else is said, and no store spends it ahead of counting it.
func Strict() Option { return func(p *Policy) { p.strict = true } }

// OnFailure returns what was chosen with WhenStoreFails; Closed if the policy is strict.
func (p *Policy) OnFailure() OnFailure {
	if p.strict {
		return Closed
	}
	return p.onFailure
}

// Strict tells whether the quota must never be exceeded.
func (p *Policy) Strict() bool { return p.strict }

// UnavailableError says that a store could not decide, and that a policy wants nothing to pass then. Who gets it answers "try
// again later", not "too many".
type UnavailableError struct {
	Policy *Policy // the first that is closed, or whose share in this process the charge does not fit into
	Err    error   // why the store could not decide
}

// Error says which policy could not be decided about, and why.
func (e *UnavailableError) Error() string {
	return "limits: policy " + e.Policy.name + " cannot be decided about now: " + e.Err.Error()
}

// Unwrap returns the store's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Report is how a store that can fail is doing, for status pages and metrics. Counters count from its construction.
type Report struct {
	// State is "up" while it decides, "down" while it is not even asked, and "faulty" while it answers with errors that
	// somebody has to mend. Since is when that began.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Changes counts how often State has changed, and Error is what went wrong last; "" if nothing has.
	Changes int64  `json:"changes"`
	Error   string `json:"error,omitempty"`
	// Instances is what a quota is divided by where this process decides alone.
	Instances int `json:"instances"`
	// Decisions counts decisions by their Source, and Errors failed calls by their kind.
	Decisions map[string]int64 `json:"decisions"`
	Errors    map[string]int64 `json:"errors,omitempty"`
	// Home is set if regions share the quotas.
	Home *Home `json:"home,omitempty"`
	// SecondTries counts decisions that were asked about another sub-bucket, for the first did not have enough.
	SecondTries int64 `json:"second_tries,omitempty"`
	// Merges is set if counts that are kept in this process are merged in the store.
	Merges *Merges `json:"merges,omitempty"`
	// Warnings are what is wrong with the way the store is set up, as far as it could be found out.
	Warnings []string `json:"warnings,omitempty"`
}

// Reporter is a Store that can tell how it is doing.
type Reporter interface{ Report() Report }

// Merges is how it goes with counts that are kept in this process and told the store afterwards, see SharedAsync.
type Merges struct {
	// Keys is how many balances are counted here now.
	Keys int64 `json:"keys"`
	// Done and Failed count the messages in which the store was told, and Last is when one last worked (or the start).
	Done   int64     `json:"done"`
	Failed int64     `json:"failed"`
	Last   time.Time `json:"last"`
}

// Home is how it goes with what regions lend each other.
type Home struct {
	// Region is the one that this process is in, State and Error are those of the store that all regions share.
	Region string `json:"region"`
	State  string `json:"state"`
	Error  string `json:"error,omitempty"`
	// Borrowed counts decisions that were admitted with what home has.
	Borrowed int64 `json:"borrowed"`
}
