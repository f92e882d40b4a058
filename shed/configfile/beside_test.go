package configfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesAreLookedAtWithoutChangingThem: what would end a start is said with its line, and nothing is made or written.
func TestFilesAreLookedAtWithoutChangingThem(t *testing.T) {
	folder := t.TempDir()
	const file = `
store: {redis: {url: "redis://h:1", password_file: pass}}
limits: [{name: a, fixed_window: {quota: 1/s}}]
pumpkin:
  file: none/glass.json
  redis: {url: "redis://h:1", password_file: empty, snapshot_file: none/state.json}
  admin: {token_file: token, audit_file: none/audit.jsonl}
`
	path := filepath.Join(folder, "f.yaml")
	check := func() (said []string) {
		t.Helper()
		c, err := Parse(path, []byte(file), Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range c.CheckFiles() {
			if !strings.HasPrefix(w, path+":") {
				t.Errorf("no place: %s", w)
			}
			said = append(said, strings.Split(w, ": ")[1])
		}
		return said
	}
	if err := os.WriteFile(filepath.Join(folder, "empty"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"store.redis.password_file", "pumpkin.file", "pumpkin.redis.password_file", "pumpkin.redis.snapshot_file",
		"pumpkin.admin.token_file", "pumpkin.admin.audit_file",
	}
	if got := check(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := os.Mkdir(filepath.Join(folder, "none"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pass", "empty", "token"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(strings.Repeat("x", 40)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := check(); len(got) > 0 {
		t.Errorf("the control: %q", got)
	}
	if left, err := os.ReadDir(filepath.Join(folder, "none")); err != nil || len(left) > 0 {
		t.Errorf("looking has made %v %v", left, err)
	}
	audit := filepath.Join(folder, "none", "audit.jsonl")
	if err := os.WriteFile(audit, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := check(); len(got) > 0 {
		t.Errorf("with a trail: %q", got)
	}
	if text, err := os.ReadFile(audit); string(text) != "{}\n" {
		t.Errorf("%q %v", text, err)
	}
}

func TestAFileThatIsWrittenIsNothingElse(t *testing.T) {
	for text, want := range map[string]string{
		"pumpkin: {admin: {audit_file: f.yaml}}":                                                            `f.yaml:1: pumpkin.admin.audit_file: "f.yaml" would be written over, and is this file itself too`,
		"pumpkin: {file: x, admin: {audit_file: ./x}}":                                                      `pumpkin.admin.audit_file: "x" would be written over, and is pumpkin.file too`,
		"pumpkin: {redis: {url: \"redis://h:1\", snapshot_file: x}, admin: {audit_file: x}}":                `pumpkin.admin.audit_file: "x" would be written over, and is pumpkin.redis.snapshot_file too`,
		"pumpkin: {redis: {url: \"redis://h:1\", password_file: x}, admin: {token_file: x, audit_file: y}}": "",
	} {
		_, err := Parse("f.yaml", []byte(text), Config{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
