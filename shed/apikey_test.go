package shed

import (
	"fmt"
	"strings"
	"testing"
)

// The digest of a key is what sha256sum says of it, so no tool of ours is needed to make one.
func ExampleDigestKey() {
	fmt.Println(DigestKey("correct-horse-battery-staple", ""))
	// Output: sha256:87cbebfeebc05f7c54ac9336c4b4bbec831227a641951a4bde7edd56020f8590
}

func TestDigestsSurviveTheirText(t *testing.T) {
	for _, d := range []KeyDigest{DigestKey("k", ""), DigestKey("k", "0123456789abcdef"), DigestKey("", strings.Repeat("s", 64))} {
		if got, err := ParseKeyDigest(d.String()); err != nil || got != d {
			t.Errorf("%s: %v %v", d, got, err)
		}
	}
}

func TestTextThatIsNoDigestIsNotRepeated(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for _, text := range []string{
		"", "hunter2hunter2", sum, "sha256:", "sha256:" + sum[2:], "sha256:" + sum + "00", "sha256:" + strings.Repeat("x", 64), "hmac-sha256:" + sum,
		"hmac-sha256:00:" + sum, "hmac-sha256:" + strings.Repeat("00", 65) + ":" + sum, "hmac-sha256:zz:" + sum, "SHA256:" + sum, "md5:" + sum,
	} {
		if d, err := ParseKeyDigest(text); err == nil || d != (KeyDigest{}) || len(text) > 8 && strings.Contains(err.Error(), text[8:]) {
			t.Errorf("%q: %v %v", text, d, err)
		}
	}
}

func TestNewKeysAreLongAndFit(t *testing.T) {
	key, entry := NewAPIKey("alice", "premium")
	if other, _ := NewAPIKey("alice", ""); len(key) != 64 || key == other {
		t.Errorf("%q, %q", key, other)
	}
	if entry.Digest != DigestKey(key, "") || entry.Name != "alice" || entry.Plan != "premium" {
		t.Errorf("%+v", entry)
	}
}
