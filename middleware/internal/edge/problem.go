package edge

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// Closed is the reason of a refusal by a shedder that has been closed: this instance is going away.
const Closed shed.Reason = "closed"

// ProblemContentType is the media type of a Problem.
const ProblemContentType = "application/problem+json"

// The problem types that draft-ietf-httpapi-ratelimit-headers asks IANA to register, and the one of RFC 9457 for problems
// that are no more than their status. A title belongs to its type.
const (
	typeQuota    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	titleQuota   = "Quota Exceeded"
	typeReduced  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	titleReduced = "Temporary Reduced Capacity"
	typeStatus   = "about:blank"
)

// Problem is the RFC 9457 document that a refusal answers with.
type Problem struct {
	// Type and Title say what kind of problem it is; Status repeats the status line.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail tells a person what happened and what to do.
	Detail string `json:"detail"`
	// Reason is the decision's word, the same as in metrics.
	Reason shed.Reason `json:"reason"`
	// Rule is the rule that refused, if one did.
	Rule string `json:"rule,omitempty"`
	// Feature is what is switched off, for feature_off.
	Feature string `json:"feature,omitempty"`
	// ViolatedPolicies names all rules that refused, as they are called in the RateLimit-Policy field.
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
}

// answer is a refusal in the form it is sent in. It is shared between requests and never changed.
type answer struct {
	problem Problem
	body    []byte
}

// answers makes and keeps answers. The zero value knows no header for API keys.
type answers struct {
	made      ready[*answer]
	keyHeader string
}

// of returns the answer to a rejection. Whatever the document depends on is in the key, and nothing that differs from
// request to request is in the document, so that refusing costs no encoding.
func (a *answers) of(r *shed.Rejection) *answer {
	var buf [256]byte
	key := append(append(append(buf[:0], r.Reason...), 0), r.Rule...)
	key = append(append(append(append(key, 0), r.Feature...), 0), r.Words...)
	if overQuota(r.Reason) && r.Decision != nil {
		for i := range r.Decision.Len() {
			if v := r.Decision.At(i); v.Reason != limits.Allowed {
				key = append(append(key, 0), v.Policy.Name()...)
			}
		}
	}
	if made, ok := a.made.find(key); ok {
		return made
	}
	return a.made.keep(string(key), newAnswer(a.describe(r)))
}

func newAnswer(p Problem) *answer {
	body, err := json.Marshal(p)
	if err != nil { // a struct of strings and a number cannot fail
		body = []byte(`{}`)
	}
	return &answer{p, append(body, '\n')}
}

// describe writes the document.
func (a *answers) describe(r *shed.Rejection) Problem {
	p := Problem{
		Type: typeReduced, Title: titleReduced, Status: statusOf(r.Reason),
		Detail: a.detail(r), Reason: r.Reason, Rule: r.Rule, Feature: r.Feature,
	}
	switch p.Status {
	case http.StatusTooManyRequests:
		p.Type, p.Title = typeQuota, titleQuota
		p.ViolatedPolicies = violated(r)
	case http.StatusForbidden:
		p.Type, p.Title = typeStatus, http.StatusText(http.StatusForbidden)
	}
	return p
}

func violated(r *shed.Rejection) (names []string) {
	if r.Decision != nil {
		for i := range r.Decision.Len() {
			if v := r.Decision.At(i); v.Reason != limits.Allowed {
				names = append(names, v.Policy.Name())
			}
		}
	}
	if len(names) == 0 && r.Rule != "" {
		names = []string{r.Rule}
	}
	return names
}

// overQuota reports whether the refusal is about the client's own quota.
func overQuota(reason shed.Reason) bool {
	return reason == shed.OverLimit || reason == shed.CostTooLarge || reason == shed.InFlight
}

// statusOf returns the status that answers with reason: 429 where the client has used up what is its own, 403 where nobody
// knows who it is, 503 where the service is short.
func statusOf(reason shed.Reason) int {
	switch {
	case overQuota(reason):
		return http.StatusTooManyRequests
	case reason == shed.NoIdentity:
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}

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
		if a.keyHeader != "" {
			return "It cannot be told who is asking, and this service has to know. Send an API key in the field " + a.keyHeader + "."
		}
		return "It cannot be told who is asking, and this service has to know."
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
	case Closed:
		return "This instance of the service is shutting down." + again
	}
	return "The service has more work than it can do at the moment." + again
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `'`) + `"` }
