package redisstore

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestNamesSteerNothing: no client chooses its server by naming itself, none meets another, and no name is long.
func TestNamesSteerNothing(t *testing.T) {
	s := &Store{prefix: DefaultPrefix}
	seen := make(map[string]string)
	for _, client := range []string{
		"", "a", "customer-42", "{", "}", "{}", "a}b", "{a}", "}{", "~", "~a", "a b", "a\x00", "\x00", "é", "\xff",
		strings.Repeat("x", longestName), strings.Repeat("x", longestName+1), strings.Repeat("x", 1<<20), tag(""), tag("{a}"), "a:b", "a}:b",
	} {
		key := s.key("p", client)
		if other, met := seen[key]; met {
			t.Errorf("%.20q and %.20q meet at %q", client, other, key)
		}
		seen[key] = client
		if len(key) > len(DefaultPrefix)+longestName+10 {
			t.Errorf("the key of %.20q has %d bytes", client, len(key))
		}
		open, end := strings.IndexByte(key, '{'), strings.IndexByte(key, '}')
		if open != len(DefaultPrefix)+1 || end < open+2 || key[open+1:end] != tag(client) || key[end:] != "}:p" {
			t.Errorf("%.20q is kept at %q", client, key)
		}
	}
	if got := s.key("per-client", "customer-42"); got != "spillway:{customer-42}:per-client" {
		t.Errorf("an everyday key is %q", got)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(nil, Config{}); err == nil {
		t.Error("no client is taken")
	}
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	for _, prefix := range []string{"a{b", "a}b", "a b", "a\n", "é"} {
		if _, err := New(client, Config{Prefix: prefix}); err == nil || !strings.Contains(err.Error(), "Prefix") {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for address, says := range map[string]string{
		"localhost:6379":                           "scheme",
		"http://localhost":                         "scheme",
		"redis+star://localhost":                   "scheme",
		"redis+sentinel://localhost":               "master_name",
		"redis+sentinel://a:1,b:1/0?master_name=m": "addr=HOST:PORT",
		"redis://localhost/zero":                   "database",
		"redis://localhost?surprise=1":             "surprise",
		"redis://user:se%zzcret@localhost/0":       "",
		"redis+cluster://u:secret@h?x=1":           "x",
	} {
		client, err := Open(address, Options{})
		if err == nil {
			client.Close()
			t.Errorf("%s is taken", address)
			continue
		}
		if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "se%zzcret") {
			t.Errorf("%s: %v, want it to say %q and no password", address, err, says)
		}
	}
	if _, err := Open("redis://localhost", Options{Timeout: -1}); err == nil {
		t.Error("a negative timeout is taken")
	}
}
