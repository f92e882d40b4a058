package edge

import (
	"encoding/json"
	"net/http"

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

// Answer is a refusal in the form it is sent in. It is shared between requests and must not be changed.
type Answer struct {
	Problem Problem
	Value   any    // the Problem, for whom it has to be in an interface
	Body    []byte // and as it is sent
	page    page
}

// answers makes and keeps answers. The zero value knows no header for API keys.
type answers struct {
	made      ready[string, *Answer]
	single    ready[single, *Answer]
	keyHeader string
}

// single is a refusal that one rule alone had a word in.
type single struct {
	policy *limits.Policy
	reason shed.Reason
}

// of returns the answer to a rejection. Nothing that differs from request to request is in the document, so that refusing costs no
// encoding.
func (a *answers) of(r *shed.Rejection) *Answer {
	if len(r.Verdicts) != 1 || !overQuota(r.Reason) {
		return a.any(r)
	}
	key := single{r.Verdicts[0].Policy, r.Reason}
	if made := a.single.all()[key]; made != nil {
		return made
	}
	return a.single.keep(key, a.any(r))
}

// any is of for all rejections: whatever the document depends on is in the key.
func (a *answers) any(r *shed.Rejection) *Answer {
	var buf [256]byte
	key := append(append(append(buf[:0], r.Reason...), 0), r.Rule...)
	key = append(append(append(append(key, 0), r.Feature...), 0), r.Words...)
	if overQuota(r.Reason) {
		for i := range r.Verdicts {
			if v := &r.Verdicts[i]; v.Reason != limits.Allowed {
				key = append(append(key, 0), v.Policy.Name()...)
			}
		}
	}
	if made := a.made.all()[string(key)]; made != nil {
		return made
	}
	return a.made.keep(string(key), newAnswer(a.describe(r)))
}

func newAnswer(p Problem) *Answer {
	body, err := json.Marshal(p)
	if err != nil { // a struct of strings and a number cannot fail
		body = []byte(`{}`)
	}
	return &Answer{p, p, append(body, '\n'), newPage(p)}
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
	case http.StatusForbidden, http.StatusRequestTimeout:
		p.Type, p.Title = typeStatus, http.StatusText(p.Status)
	}
	return p
}

func violated(r *shed.Rejection) (names []string) {
	for i := range r.Verdicts {
		if v := &r.Verdicts[i]; v.Reason != limits.Allowed {
			names = append(names, v.Policy.Name())
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
// knows who it is, 408 where the rest of the request does not come, 503 where the service is short.
func statusOf(reason shed.Reason) int {
	switch {
	case overQuota(reason):
		return http.StatusTooManyRequests
	case reason == shed.NoIdentity:
		return http.StatusForbidden
	case reason == shed.BodyTooSlow:
		return http.StatusRequestTimeout
	}
	return http.StatusServiceUnavailable
}
