package pumpkin

import (
	"crypto/rand"
	"time"
)

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
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var text [26]byte
	for i := range text {
		var v byte
		for bit := 5*i - 2; bit < 5*i+3; bit++ {
			v <<= 1
			if bit >= 0 {
				v |= b[bit/8] >> (7 - bit%8) & 1
			}
		}
		text[i] = alphabet[v]
	}
	return string(text[:])
}
