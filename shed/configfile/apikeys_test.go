package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillway-go/spillway/shed"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAFileOfAPIKeysIsAListOrAMappingWithOne(t *testing.T) {
	folder := t.TempDir()
	main := filepath.Join(folder, "f.yaml")
	_, alice := shed.NewAPIKey("alice", "premium")
	entry := `{name: alice, digest: "` + alice.Digest.String() + `", plan: premium}`
	for text, want := range map[string]int{"- " + entry: 1, "keys:\n  - " + entry: 1, "[]": 0, "keys: []": 0, "[" + entry + "]": 1} {
		if err := os.WriteFile(filepath.Join(folder, "keys.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Parse(main, []byte("clients: {api_keys_file: keys.yaml}\n"), Config{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		keys := c.Shed.Clients.APIKeys
		if keys == nil || len(keys) != want || want == 1 && keys[0] != alice {
			t.Errorf("%s: %+v", text, keys)
		}
		if c.APIKeysFile != filepath.Join(folder, "keys.yaml") {
			t.Errorf("the file is %s", c.APIKeysFile)
		}
	}
	if c, err := Parse(main, []byte("clients: {}\n"), Config{}); err != nil || c.Shed.Clients.APIKeys != nil || c.APIKeysFile != "" {
		t.Errorf("without the key: %+v, %v", c, err)
	}
}

func TestNoMessageShowsWhatMayBeAKey(t *testing.T) {
	folder := t.TempDir()
	const secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
	for _, text := range []string{
		"- {name: alice, digest: " + secret + "}", "- {name: alice, digest: \"sha256:" + secret + "\"}", "- {name: alice, digest: \"hmac-sha256:" + secret + ":00\"}",
	} {
		if err := os.WriteFile(filepath.Join(folder, "keys.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Parse(filepath.Join(folder, "f.yaml"), []byte("clients: {api_keys_file: keys.yaml}\n"), Config{})
		if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "keys.yaml:1: [0].digest: is no digest") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAPipeInPlaceOfTheKeysIsNotWaitedFor(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Parse(filepath.Join(folder, "f.yaml"), []byte("clients: {api_keys_file: pipe}\n"), Config{})
	if err == nil || !strings.Contains(err.Error(), "is no file; name a file") {
		t.Error(err)
	}
}
