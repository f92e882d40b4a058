package pumpkin

import (
	"crypto/rand"
	"strings"
	"time"
)

// NewEpoch mints an epoch that sorts after another one, for a Store that has lost its state: of now, or right after the other
// where that is of a later time, as a slow clock would mint one that clients ignore. An empty after means of now. After the
// last of all epochs, of the year 10889, there is none, and that one is returned.
func NewEpoch(after string) string {
	for _, epoch := range []string{newULID(time.Now()), newULID(timeOf(after).Add(time.Millisecond))} {
		if epoch > after {
			return epoch
		}
	}
	return after
}

// crockford is the base32 of ULIDs.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// timeOf is the time in the first ten characters of a ULID.
func timeOf(ulid string) time.Time {
	var ms int64
	for _, c := range ulid[:min(10, len(ulid))] {
		ms = ms<<5 + int64(max(0, strings.IndexRune(crockford, c)))
	}
	return time.UnixMilli(ms)
}

// newULID returns a ULID (github.com/ulid/spec): 48 bits of milliseconds since 1970 and 80 random bits, in Crockford's
// base32, so that texts sort as the times do and no two instances mint the same.
func newULID(now time.Time) string {
	var b [16]byte
	ms := uint64(max(now.UnixMilli(), 0))
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	rand.Read(b[6:]) // never fails: the runtime ends the program instead

	// 128 bits in 26 characters of 5 bits: the first character holds the top 3.
	var text [26]byte
	for i := range text {
		var v byte
		for bit := 5*i - 2; bit < 5*i+3; bit++ {
			v <<= 1
			if bit >= 0 {
				v |= b[bit/8] >> (7 - bit%8) & 1
			}
		}
		text[i] = crockford[v]
	}
	return string(text[:])
}
