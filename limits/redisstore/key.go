package redisstore

import (
	"crypto/sha256"
	"encoding/base64"
)

// longestName is the length above which a client's name is kept as a digest.
const longestName = 64

// key returns the name under which Redis keeps a balance: PREFIX:{client}:POLICY. The braces make all balances of one client
// live on one server of a cluster, and clients spread over all.
func (s *Store) key(policy, client string) string {
	return s.prefix + ":{" + tag(client) + "}:" + policy
}

// tag returns what stands for a client between the braces: its name, where that cannot be mistaken for anything else, or a
// digest of it. So nobody chooses where keys live by naming himself, no name is long, and no two clients meet.
func tag(client string) string {
	if plain(client) {
		return client
	}
	digest := sha256.Sum256([]byte(client))
	return "~" + base64.RawURLEncoding.EncodeToString(digest[:18]) // 144 bits: nobody finds two names with the same
}

func plain(client string) bool {
	if client == "" || len(client) > longestName {
		return false
	}
	for i := range len(client) {
		if c := client[i]; c <= ' ' || c >= '~' || c == '{' || c == '}' {
			return false
		}
	}
	return true
}
