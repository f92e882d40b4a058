package edge

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/limits"
)

// Legacy is a spelling of quotas from before there was a draft. The zero value sends none.
type Legacy uint8

// The spellings. Reset is when the quota is whole again; nobody has ever agreed on its unit, so it is part of the name.
const (
	NoLegacy        Legacy = iota
	XRateLimitEpoch        // X-RateLimit-Limit, -Remaining, -Reset; Reset in seconds since 1970, as GitHub sends it
	XRateLimitDelta        // the same with Reset in seconds from now
	RateLimitDelta         // RateLimit-Limit, -Remaining, -Reset of the draft's versions up to 06; Reset in seconds from now
)

// legacyOf reads the word for a spelling.
func legacyOf(word string) (Legacy, error) {
	switch word {
	case "":
		return NoLegacy, nil
	case "x_ratelimit_epoch":
		return XRateLimitEpoch, nil
	case "x_ratelimit_delta":
		return XRateLimitDelta, nil
	case "ratelimit_delta":
		return RateLimitDelta, nil
	}
	return NoLegacy, fmt.Errorf("answers.legacy is %q; use x_ratelimit_epoch, x_ratelimit_delta or ratelimit_delta, or leave it out", word)
}

// set adds the three fields, of any spelling but NoLegacy, for the rule that is nearest to its end. Fields that a limiter further out has
// set stay if they leave the client less.
func (l Legacy) set(header http.Header, verdicts []limits.Verdict, refused bool) {
	v := tightest(verdicts, refused)
	prefix := "X-Ratelimit-" // net/http's spelling
	if l == RateLimitDelta {
		prefix = "Ratelimit-"
	}
	if before := header[prefix+"Remaining"]; len(before) == 1 && !refused {
		if n, err := strconv.ParseInt(before[0], 10, 64); err == nil && n < v.Remaining {
			return
		}
	}
	reset := ceilSeconds(max(v.ResetAfter, v.RetryAfter))
	if l == XRateLimitEpoch {
		reset = time.Now().Add(max(v.ResetAfter, v.RetryAfter) + time.Second - 1).Unix()
	}
	decimal := func(n int64) []string { return []string{strconv.FormatInt(max(n, 0), 10)} }
	header[prefix+"Limit"] = decimal(v.Policy.Quota())
	header[prefix+"Remaining"] = decimal(v.Remaining)
	header[prefix+"Reset"] = decimal(reset)
}

// tightest returns the verdict with the smallest share of its quota left; of a refusal the one that refuses for longest.
func tightest(verdicts []limits.Verdict, refused bool) *limits.Verdict {
	best := &verdicts[0]
	for i := range verdicts[1:] {
		v := &verdicts[i+1]
		switch {
		case refused && v.Reason != best.Reason:
			if v.Reason > best.Reason {
				best = v
			}
		case refused && v.RetryAfter != best.RetryAfter:
			if v.RetryAfter > best.RetryAfter {
				best = v
			}
		case float64(v.Remaining)*float64(best.Policy.Quota()) < float64(best.Remaining)*float64(v.Policy.Quota()):
			best = v
		}
	}
	return best
}
