package pumpkin

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// clientView is what a client knows, made ready for readers and then never changed.
type clientView struct {
	doc   Document
	key   uint64             // of the places under the document's epoch
	off   map[string]float64 // by feature, for each feature that an item names: the share for which it is off
	all   float64            // the share for every other feature
	holds []clientHold
}

// clientHold keeps features away from a client although they are on again, so that not everybody comes back at once.
type clientHold struct {
	key      uint64
	features map[string]Feature
	until    time.Duration // since the client's start
}

// maxClientHolds bounds what is remembered of documents that change faster than clients come back.
const maxClientHolds = 64

// parseDocument reads a document and refuses what cannot be one. Fields that it does not know are ignored: a newer server
// may have them.
func parseDocument(body []byte) (Document, error) {
	var d Document
	if err := json.Unmarshal(body, &d); err != nil {
		return d, fmt.Errorf("not a document: %w", err)
	}
	switch {
	case d.Schema != Schema:
		return d, fmt.Errorf("not a document: schema is %d, want %d", d.Schema, Schema)
	case d.Epoch == "":
		return d, errors.New("not a document: it has no epoch")
	case d.PollAfter <= 0:
		return d, fmt.Errorf("not a document: poll_after is %d", d.PollAfter)
	}
	for _, n := range d.Items {
		for name, f := range n.Features {
			if f.Off < 0 || f.Off > 1 {
				return d, fmt.Errorf("not a document: features.%s is off for %v, want 0 to 1", name, f.Off)
			}
		}
	}
	return d, nil
}

// olderThan reports whether d is to be ignored by one who knows e: a lagging instance, a cache. Another epoch is newer where
// it sorts later; epochs are ULIDs.
func (d Document) olderThan(e Document) bool {
	if d.Epoch != e.Epoch {
		return d.Epoch < e.Epoch
	}
	return d.Rev < e.Rev
}

// newClientView makes d ready. Features that were off in old, which may be nil, come back one client after the other: u is this
// client's part of the spread.
func newClientView(d Document, old *clientView, now time.Duration, u float64) *clientView {
	v := &clientView{doc: d, key: placesOf(d.Epoch), off: map[string]float64{}}
	for _, n := range d.Items {
		v.all = max(v.all, n.Features[Everything].Off)
	}
	for _, n := range d.Items {
		for name := range n.Features {
			v.off[name] = max(v.off[name], n.offShare(name), v.all)
		}
	}
	if old == nil {
		return v
	}
	v.holds = old.holdsAt(now)
	for _, n := range old.doc.Items {
		if n.RecoverSpread > 0 && !d.keeps(n) {
			until := now + partOf(time.Duration(n.RecoverSpread)*time.Second, u)
			v.holds = append(v.holds, clientHold{old.key, n.Features, until})
		}
	}
	if extra := len(v.holds) - maxClientHolds; extra > 0 {
		v.holds = v.holds[extra:]
	}
	return v
}

// keeps reports whether d switches off what n did.
func (d Document) keeps(n Notice) bool {
	for _, m := range d.Items {
		if m.ID == n.ID && maps.Equal(m.Features, n.Features) {
			return true
		}
	}
	return len(n.Features) == 0
}

// holdsAt returns the holds that are not over.
func (v *clientView) holdsAt(now time.Duration) []clientHold {
	var left []clientHold
	for _, h := range v.holds {
		if now < h.until {
			left = append(left, h)
		}
	}
	return left
}

// shareOf is the share of clients for which feature is off.
func (v *clientView) shareOf(feature string) float64 {
	if s, ok := v.off[feature]; ok {
		return s
	}
	return v.all
}

func (h clientHold) shareOf(feature string) float64 {
	return max(h.features[feature].Off, h.features[Everything].Off)
}

// placesOf makes the key of the places that clients have in shares under an epoch: the same for the server and for clients
// that know by which name the server calls them.
func placesOf(epoch string) uint64 {
	key := sha256.Sum256([]byte("pumpkin places " + epoch))
	return binary.BigEndian.Uint64(key[:])
}
