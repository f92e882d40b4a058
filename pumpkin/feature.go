package pumpkin

import (
	"math/rand/v2"
	"time"
)

// FeatureOff reports whether feature is off for client, with the banner's words in the default language and how long to
// stay away. It is what the document tells clients, enforced: shed.Features for a shedder. It takes no lock and allocates
// nothing. Everything is off when an item says so of it; the empty feature never is; the empty client is one client like any other.
//
// A client's place in a share depends on the feature, the client and the epoch: it is the same on every request and every
// instance of that epoch, and a client that is off stays off while the share grows. Where several items hold the feature,
// the most severe speaks.
//
// retryAfter is an estimate. An operator may end the item at any moment, and most end long before their TTL, so no client
// is told to wait longer than about one PollAfter, the pace at which the document itself promises news; nor longer than to
// the end of the item, but at least 1 s. Up to a fifth is added at random, and where the wait reaches the end of the item
// up to its RecoverSpread, so that clients do not come back all at once.
func (p *Pumpkin) FeatureOff(feature, client string) (words string, retryAfter time.Duration, off bool) {
	if feature == "" {
		return "", 0, false
	}
	s := p.current.Load()
	cuts := s.cutsFor(feature)
	if len(cuts) == 0 {
		return "", 0, false
	}
	now := time.Now()
	place := -1.0 // computed when a share asks for it
	var left, spread time.Duration
	for _, c := range cuts {
		remaining := maxTTL // what the break-glass file says without a ttl lasts as long as the file
		if !c.expires.IsZero() {
			remaining = c.expires.Sub(now)
		}
		if remaining <= 0 { // the timer is late; the item's end is not
			continue
		}
		if c.share < 1 {
			if place < 0 {
				place = placeOf(s.placeKey, feature, client)
			}
			if place >= c.share {
				continue
			}
		}
		if !off {
			words, off = c.words, true
		}
		if remaining > left {
			left, spread = remaining, c.spread
		}
	}
	if !off {
		return "", 0, false
	}
	return words, stayAway(left, spread, s.pollAfter), true
}

// stayAway turns the time left of an item into an estimate for Retry-After.
func stayAway(left, spread, pollAfter time.Duration) time.Duration {
	wait := max(min(left, pollAfter), time.Second)
	jitter := wait / 5
	if wait >= left {
		jitter = max(jitter, spread)
	}
	return wait + rand.N(jitter+1)
}

// placeOf maps feature and client to [0,1), evenly: FNV-1a begun with the key and finished with the mixer of MurmurHash3,
// for FNV alone leaves the upper bits of short texts poor. The byte between the two is no part of any UTF-8 text, so
// ("ab","c") and ("a","bc") differ.
func placeOf(key uint64, feature, client string) float64 {
	const prime = 1099511628211
	h := key
	for i := range len(feature) {
		h = (h ^ uint64(feature[i])) * prime
	}
	h = (h ^ 0xff) * prime
	for i := range len(client) {
		h = (h ^ uint64(client[i])) * prime
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return float64(h>>11) / (1 << 53)
}
