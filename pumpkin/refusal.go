package pumpkin

import "fmt"

// Reason is the one word for why a write or an admin request was refused; the "reason" member of problem documents.
type Reason string

// All reasons, with the HTTP status each answers with.
const (
	MalformedJSON      Reason = "malformed_json"        // 400
	Unauthorized       Reason = "unauthorized"          // 401
	CrossOrigin        Reason = "cross_origin"          // 403
	WrongHost          Reason = "wrong_host"            // 403: the Host field is not one of the allowed names
	ReadOnly           Reason = "read_only"             // 403: the token may only read
	NotFound           Reason = "not_found"             // 404
	MethodNotAllowed   Reason = "method_not_allowed"    // 405
	StaleRev           Reason = "stale_rev"             // 412: If-Match names an older state
	Exists             Reason = "exists"                // 412: If-None-Match: * and the item is there
	ManualWins         Reason = "manual_wins"           // 409: a person holds what automation would touch
	HeldOff            Reason = "held_off"              // 409: force_off keeps automation away
	BodyTooLarge       Reason = "body_too_large"        // 413
	NotJSON            Reason = "not_json"              // 415
	UnknownField       Reason = "unknown_field"         // 422
	InvalidField       Reason = "invalid_field"         // 422: a value that is not allowed, see the detail
	InvalidParameter   Reason = "invalid_parameter"     // 422: in the query
	ConfirmationNeeded Reason = "confirmation_required" // 422: "*" without confirm=all
	UnknownTemplate    Reason = "unknown_template"      // 422: no prepared text is called that
	TooManyItems       Reason = "too_many_items"        // 422
	DocumentTooLarge   Reason = "document_too_large"    // 422
	TooManyFailures    Reason = "too_many_failures"     // 429: wrong tokens only
	Closed             Reason = "closed"                // 503: after Close
)

// status is the HTTP status that answers with r.
func (r Reason) status() int {
	switch r {
	case MalformedJSON:
		return 400
	case Unauthorized:
		return 401
	case CrossOrigin, WrongHost, ReadOnly:
		return 403
	case NotFound:
		return 404
	case MethodNotAllowed:
		return 405
	case ManualWins, HeldOff:
		return 409
	case StaleRev, Exists:
		return 412
	case BodyTooLarge:
		return 413
	case NotJSON:
		return 415
	case TooManyFailures:
		return 429
	case Closed:
		return 503
	}
	return 422
}

// Refusal is the error of a write that was not made. Nothing has changed.
type Refusal struct {
	Reason Reason
	// Detail says what is wrong and how to mend it, for people.
	Detail string
}

// Error returns the reason and the detail.
func (r *Refusal) Error() string { return "pumpkin: " + string(r.Reason) + ": " + r.Detail }

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
