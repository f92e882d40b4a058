package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"sync"

	"github.com/spillway-go/spillway/shed"
)

// keyring knows which API keys there are. It holds digests; the keys themselves are only ever compared by those.
type keyring struct{ groups []keyGroup }

// keyGroup is the keys whose digests have the same salt, so that one digest of what a client shows finds them all.
type keyGroup struct {
	macs    *sync.Pool // of *keyMAC; nil for plain digests
	holders map[[sha256.Size]byte]holder
}

type holder struct{ name, plan string }

// maxSalts bounds how many digests one request can cost.
const maxSalts = 8

// newKeyring returns nil if there is no list of keys.
func newKeyring(list []shed.APIKey) (*keyring, error) {
	if list == nil {
		return nil, nil
	}
	k := new(keyring)
	bySalt, plans := map[string]int{}, map[string]string{}
	for i, key := range list {
		if plan, twice := plans[key.Name]; twice && plan != key.Plan {
			return nil, fmt.Errorf("clients.api_keys[%d]: %q has two plans; give all keys of a client the same", i, key.Name)
		}
		plans[key.Name] = key.Plan
		switch {
		case key.Name == "" || len(key.Name) > 64 || !printable(key.Name):
			return nil, fmt.Errorf("clients.api_keys[%d]: the name %q is not 1 to 64 printable characters", i, key.Name)
		case key.Digest == shed.KeyDigest{}:
			return nil, fmt.Errorf("clients.api_keys[%d] %q: no digest; make one with shed.DigestKey", i, key.Name)
		}
		at, known := bySalt[key.Digest.Salt]
		if !known {
			at = len(k.groups)
			bySalt[key.Digest.Salt] = at
			k.groups = append(k.groups, newKeyGroup(key.Digest.Salt))
		}
		holders := k.groups[at].holders
		if other, twice := holders[key.Digest.Sum]; twice {
			return nil, fmt.Errorf("clients.api_keys[%d]: %q has the same key as %q; give each its own", i, key.Name, other.name)
		}
		holders[key.Digest.Sum] = holder{"api_key:" + key.Name, key.Plan}
	}
	if len(k.groups) > maxSalts {
		return nil, fmt.Errorf("clients.api_keys has %d different salts, at most %d are allowed; use one for all keys", len(k.groups), maxSalts)
	}
	return k, nil
}

func newKeyGroup(salt string) keyGroup {
	g := keyGroup{holders: map[[sha256.Size]byte]holder{}}
	if salt != "" {
		g.macs = &sync.Pool{New: func() any { return &keyMAC{mac: hmac.New(sha256.New, []byte(salt))} }}
	}
	return g
}

// holder returns who holds a key, "" if nobody does.
func (k *keyring) holder(key string) (name, plan string) {
	for i := range k.groups {
		g := &k.groups[i]
		if h, ok := g.holders[g.sum(key)]; ok {
			return h.name, h.plan
		}
	}
	return "", ""
}

func (g *keyGroup) sum(key string) [sha256.Size]byte {
	if g.macs == nil {
		var buf [maxKey]byte
		sum := sha256.Sum256(append(buf[:0], key...))
		clear(buf[:])
		return sum
	}
	m := g.macs.Get().(*keyMAC)
	defer g.macs.Put(m)
	return m.of(key)
}

// keyMAC is an HMAC with room for what goes in and comes out.
type keyMAC struct {
	mac hash.Hash
	in  [maxKey]byte
	out [sha256.Size]byte
}

func (m *keyMAC) of(key string) [sha256.Size]byte {
	m.mac.Reset()
	m.mac.Write(append(m.in[:0], key...))
	clear(m.in[:])
	m.mac.Sum(m.out[:0])
	return m.out
}
