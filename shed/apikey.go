package shed

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// APIKey is a key that a client may hold. Who shows it is that client: not a label but an identity.
type APIKey struct {
	// Name is the client's name, in metrics' place and in the store; printable ASCII without blanks, at most 64 bytes. Several
	// keys may have the same name, so that a client can change its key without a gap; they then have the same plan.
	Name string
	// Digest stands for the key, which is never kept.
	Digest KeyDigest
	// Plan is the client's plan, for Limit.Plans; empty means none.
	Plan string
}

// Secret is bytes that nobody shall see.
type Secret []byte

// String tells nothing.
func (Secret) String() string { return "(secret)" }

// KeyDigest is what a configuration keeps of an API key in the key's place: SHA-256 of it, or HMAC-SHA-256 under a salt. Keys
// have to be long and random, such as those of NewAPIKey: a digest hides only what cannot be guessed. A salt keeps digests of
// one file from meeting those of another. It is comparable, and the zero value is of no key.
type KeyDigest struct {
	// Salt is the key of the HMAC, as bytes; empty means plain SHA-256.
	Salt string
	// Sum is the whole digest.
	Sum [sha256.Size]byte
}

// minSalt is the shortest salt, in bytes.
const minSalt = 16

// The words in front of the two kinds of digest.
const (
	plainDigest  = "sha256:"
	saltedDigest = "hmac-sha256:"
)

// DigestKey returns the digest of key under salt; an empty salt means plain SHA-256.
func DigestKey(key, salt string) KeyDigest {
	if salt == "" {
		return KeyDigest{Sum: sha256.Sum256([]byte(key))}
	}
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(key))
	return KeyDigest{Salt: salt, Sum: [sha256.Size]byte(mac.Sum(nil))}
}

// NewAPIKey makes a key of 256 random bits for a client. The key is for the client alone and is returned this once; the entry is
// for the configuration.
func NewAPIKey(name, plan string) (key string, entry APIKey) {
	var raw [32]byte
	rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	key = hex.EncodeToString(raw[:])
	return key, APIKey{Name: name, Digest: DigestKey(key, ""), Plan: plan}
}

// String returns the digest as it is written in files: sha256:HEX, or hmac-sha256:SALT:HEX with the salt in hex.
func (d KeyDigest) String() string {
	if d.Salt == "" {
		return plainDigest + hex.EncodeToString(d.Sum[:])
	}
	return saltedDigest + hex.EncodeToString([]byte(d.Salt)) + ":" + hex.EncodeToString(d.Sum[:])
}

// ParseKeyDigest reads what String writes. The error says what is wrong without showing any of the text, which may be a key that
// was put into the wrong place.
func ParseKeyDigest(text string) (d KeyDigest, err error) {
	sum, plain := strings.CutPrefix(text, plainDigest)
	if !plain {
		rest, salted := strings.CutPrefix(text, saltedDigest)
		if !salted {
			return d, errors.New("a digest begins with the word sha256 or hmac-sha256 and a colon")
		}
		salt, after, _ := strings.Cut(rest, ":")
		raw, err := hex.DecodeString(salt)
		if err != nil || len(raw) < minSalt || len(raw) > sha256.BlockSize {
			return d, fmt.Errorf("the salt is not %d to %d bytes in hex", minSalt, sha256.BlockSize)
		}
		d.Salt, sum = string(raw), after
	}
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != sha256.Size {
		return KeyDigest{}, fmt.Errorf("the digest is not %d bytes in hex", sha256.Size)
	}
	d.Sum = [sha256.Size]byte(raw)
	return d, nil
}
