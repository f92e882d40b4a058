package measure

// Outcome is what became of one attempt.
type Outcome uint8

// The outcomes.
const (
	OK      Outcome = iota // answered within the deadline
	Late                   // answered after it
	Shed                   // refused: 429 or 503
	Timeout                // the client gave up
	Failed                 // any other error
	outcomes
)

// Outcomes lists the words of all outcomes, in the order of their values.
var Outcomes = [outcomes]string{"ok", "late", "shed", "timeout", "error"}

// String returns the word for it.
func (o Outcome) String() string { return Outcomes[o] }
