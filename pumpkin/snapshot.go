package pumpkin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"
)

// snapshot is a board made ready for readers. It is built on every change and then never changed, so that polls and
// FeatureOff read it through one atomic pointer.
type snapshot struct {
	board board
	id    string // <epoch>.<rev>

	placeKey uint64 // of the epoch, for clients' places in a share

	// Header values as net/http keeps them. The handler stores these very slices in its response, which costs nothing.
	etag            []string
	length          []string
	cacheControl    []string
	cdnCacheControl []string

	pollAfter time.Duration // while an item is in force

	off    map[string][]cut // by feature, for each feature that an item names
	offAll []cut            // for every other feature
}

// cut is one item's hold on a feature.
type cut struct {
	share   float64
	words   string
	expires time.Time
	spread  time.Duration
}

func newSnapshot(b board) *snapshot {
	s := &snapshot{
		board: b,
		id:    b.identity(),

		placeKey: placeKey(b.epoch),
		etag:     []string{entityTag(b.body)},
		length:   []string{strconv.Itoa(len(b.body))},
		off:      map[string][]cut{},
	}
	s.cacheControl, s.cdnCacheControl = cacheHeaders(b.pollActive)
	s.pollAfter = time.Duration(b.pollActive) * time.Second
	s.offAll = cutsOf(b, Everything)
	for _, h := range b.shown() {
		for name := range h.notice.Features {
			if _, ok := s.off[name]; !ok && name != Everything {
				s.off[name] = cutsOf(b, name)
			}
		}
	}
	return s
}

// placeKey is the same on all instances of an epoch.
func placeKey(epoch string) uint64 {
	key := sha256.Sum256([]byte("pumpkin places " + epoch))
	return binary.BigEndian.Uint64(key[:])
}

// cutsOf lists what holds feature, in the order of the document, so that the most severe item speaks.
func cutsOf(b board, feature string) []cut {
	var cuts []cut
	for _, h := range b.shown() {
		if share := h.notice.offShare(feature); share > 0 {
			cuts = append(cuts, cut{
				share:   share,
				words:   h.notice.Message[b.lang],
				expires: h.expires,
				spread:  time.Duration(h.notice.RecoverSpread) * time.Second,
			})
		}
	}
	return cuts
}

// cutsFor returns what holds feature.
func (s *snapshot) cutsFor(feature string) []cut {
	if cuts, ok := s.off[feature]; ok {
		return cuts
	}
	return s.offAll
}

// entityTag is strong and depends on the bytes alone: 72 bits of their SHA-256.
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:9]) + `"`
}
