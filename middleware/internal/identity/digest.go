package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
)

// Bounds of what names a client.
const (
	maxKey       = 256 // an API key
	maxPrincipal = 128 // a principal that is used as it is; longer ones are hashed
	digestBytes  = 16  // 128 bits of the HMAC are more than enough to tell clients apart
)

// digester makes names of secrets: HMAC-SHA-256 under a secret that, if nothing else is configured, is drawn once and never leaves
// the process. Who sees names in metrics or in a store can then neither reverse them nor test guesses.
type digester struct {
	mac  hash.Hash
	in   []byte
	sum  [sha256.Size]byte
	name []byte
}

// names makes names of secrets, with states that are kept ready for use.
type names struct{ pool sync.Pool }

func newNames(secret []byte) *names {
	return &names{sync.Pool{New: func() any { return newDigester(secret) }}}
}

// ownNames are for balances of this process alone, publicNames for balances that others share without a secret between them:
// what matters most there is that all of them know a client by the same name.
var (
	ownNames    = sync.OnceValue(func() *names { return newNames(randomSecret()) })
	publicNames = sync.OnceValue(func() *names { return newNames([]byte("spillway: the names of clients")) })
)

// namesFor chooses the names. Those of one process are the same in all its middlewares.
func namesFor(secret []byte, shared bool) *names {
	switch {
	case len(secret) > 0:
		return newNames(secret)
	case shared:
		return publicNames()
	}
	return ownNames()
}

func randomSecret() []byte {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails: crypto/rand ends the process instead
	return secret
}

func newDigester(secret []byte) *digester { return &digester{mac: hmac.New(sha256.New, secret)} }

// digest returns kind followed by the digest of secret. The kind is part of what is hashed.
func (n *names) digest(kind, secret string) string {
	d := n.pool.Get().(*digester)
	defer n.pool.Put(d)
	return d.nameOf(kind, secret)
}

func (d *digester) nameOf(kind, secret string) string {
	d.mac.Reset()
	d.in = append(append(d.in[:0], kind...), secret...)
	d.mac.Write(d.in)
	clear(d.in)
	sum := d.mac.Sum(d.sum[:0])
	d.name = hex.AppendEncode(append(d.name[:0], kind...), sum[:digestBytes])
	return string(d.name)
}

// printable reports whether s is made of printable ASCII characters only.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
