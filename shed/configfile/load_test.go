package configfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// failure returns the one line that Load fails with.
func failure(t *testing.T, path string) string {
	t.Helper()
	c, err := Load(path, Config{})
	if err == nil || c != nil {
		t.Fatalf("%s: loaded %+v, %v", path, c, err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	return err.Error()
}

func TestAFileThatCannotBeReadIsOneLine(t *testing.T) {
	folder := t.TempDir()
	absent := filepath.Join(folder, "absent.yaml")
	if got, want := failure(t, absent), absent+": there is no such file; check the path, or run without a file"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := failure(t, folder), folder+": this is a folder; name the file in it"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := failure(t, ""), `"": the name of the file is empty; name a file, or leave the option out`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := failure(t, "a\x00b"); !strings.HasSuffix(got, "; check the path") {
		t.Errorf("got %q", got)
	}
}

func TestAFileThatMayNotBeReadSaysSo(t *testing.T) {
	// As the system says it: root may read everything, so a real file would prove nothing to it.
	denied := &fs.PathError{Op: "open", Path: "f.yaml", Err: syscall.EACCES}
	if got, want := unopened("f.yaml", denied).Error(), "f.yaml: this user may not read the file; change its permissions, such as chmod a+r"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnEndlessFileIsNotReadToItsEnd(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("no /dev/zero")
	}
	if got, want := failure(t, "/dev/zero"), "/dev/zero: the file is longer than 1024 KiB; is this the right file? shorten it"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAFileIsNamedInItsErrorsAsItWasNamedByTheCaller(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte("queue: {}\nlimts: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := failure(t, file), file+":2:1: limts: unknown key; did you mean limits?"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestErrorsAreFoundByTheirTypes(t *testing.T) {
	_, err := Parse("f.yaml", []byte("queue: {}\nlimts: []\nrouts: []\n"), Config{})
	var all Errors
	if !errors.As(err, &all) || len(all) != 2 {
		t.Fatalf("not Errors of two: %#v", err)
	}
	var first *Error
	want := Error{Path: "f.yaml", Line: 2, Column: 1, What: "limts: unknown key", Mend: "did you mean limits?"}
	if !errors.As(err, &first) || *first != want {
		t.Errorf("first is %+v", first)
	}
}
