package configfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)); err != nil {
		t.Skip("no file that is longer than the disk:", err)
	}
	if got, want := failure(t, path), path+": the file is longer than 1024 KiB; is this the right file? shorten it"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A pipe can be silent for ever and a device can be endless: neither is even opened, and the start ends at once.
func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", "/dev/null"} {
		if got, want := failure(t, path), path+": this is a pipe, a socket or a device, and is no file; name a file"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	w := Watch{Path: pipe}
	if _, err := w.Load(); err == nil {
		t.Error("a watch takes it")
	}
	// The same at every key that names a file.
	for key, text := range map[string]string{
		"clients.api_keys_file":       "clients: {api_keys_file: %s}",
		"store.redis.password_file":   "store: {redis: {url: \"redis://h:1\", password_file: %s}}\nlimits: [{name: a, fixed_window: {quota: 1/s}}]",
		"store.regions.password_file": "store: {redis: {url: \"redis://h:1\"}, regions: {region: eu, weights: {eu: 1, us: 1}, home: \"redis://h:1\", password_file: %s}}",
		"pumpkin.file":                "pumpkin: {file: %s}",
		"pumpkin.redis.password_file": "pumpkin: {redis: {url: \"redis://h:1\", password_file: %s}}",
		"pumpkin.redis.snapshot_file": "pumpkin: {redis: {url: \"redis://h:1\", snapshot_file: %s}}",
		"pumpkin.admin.token_file":    "pumpkin: {admin: {token_file: %s}}",
		"pumpkin.admin.audit_file":    "pumpkin: {admin: {audit_file: %s}}",
	} {
		for _, path := range []string{pipe, filepath.Dir(pipe)} {
			_, err := Parse("f.yaml", []byte(fmt.Sprintf(text, path)), Config{})
			if err == nil || !strings.Contains(err.Error(), key+": \""+path+"\": this is a ") {
				t.Errorf("%s: %v", key, err)
			}
		}
		if key == "clients.api_keys_file" {
			continue
		}
		if _, err := Parse("f.yaml", []byte(fmt.Sprintf(text, filepath.Join(filepath.Dir(pipe), "none"))), Config{}); err != nil {
			t.Errorf("the control: %s: %v", key, err)
		}
	}
	if _, err := Parse("f.yaml", []byte("pumpkin: {admin: {audit_file: /dev/stderr}}"), Config{}); err != nil {
		t.Errorf("where programs write to anyway: %v", err)
	}
}

// What a shell hands over, <(...) or what comes before a |, is read to its end, which is waited for, but not without end.
func TestAPipeThatTheProgramWasStartedWithIsRead(t *testing.T) {
	handed := func() (string, *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return fmt.Sprintf("/dev/fd/%d", r.Fd()), w
	}
	path, w := handed()
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /dev/fd")
	}
	go func() {
		for _, part := range []string{"pumpkin: {file: glass.json}\nlimits: [{name: a, ", "fixed_window: {quota: 1/s}}]\n"} {
			w.WriteString(part)
		}
		w.Close()
	}()
	if c, err := Load(path, Config{}); err != nil || len(c.Shed.Limits) != 1 || c.Pumpkin.File != "glass.json" {
		t.Errorf("%v, %v", c, err)
	}
	path, endless := handed()
	go func() {
		for {
			if _, err := endless.WriteString(strings.Repeat("# more\n", 1000)); err != nil {
				return
			}
		}
	}()
	if got := failure(t, path); !strings.Contains(got, "is longer than 1024 KiB") {
		t.Errorf("one without end: %s", got)
	}
	path, _ = handed()
	defer func(d time.Duration) { pipeWait = d }(pipeWait)
	pipeWait = 10 * time.Millisecond
	if got, want := failure(t, path), path+": the pipe was not closed within 10ms; check what writes into it"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAFileIsNamedInItsErrorsAsItWasNamedByTheCaller(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte("queue: {}\nlimts: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := failure(t, file), file+":2: limts: unknown key; did you mean limits?"; got != want {
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
	want := Error{Path: "f.yaml", Line: 2, What: "limts: unknown key", Mend: "did you mean limits?"}
	if !errors.As(err, &first) || *first != want {
		t.Errorf("first is %+v", first)
	}
}

// TestAForwardingHeaderByItsName: the two that have words may be called by their names, in any spelling.
func TestAForwardingHeaderByItsName(t *testing.T) {
	for name, want := range map[string]string{
		"x_forwarded_for": "x_forwarded_for", "X-Forwarded-For": "x_forwarded_for", "x-forwarded-for": "x_forwarded_for",
		"forwarded": "forwarded", "Forwarded": "forwarded", "CF-Connecting-IP": "CF-Connecting-IP",
	} {
		c, err := Parse("f", []byte("clients: {trusted_proxies: [10.0.0.0/8], forwarded: "+name+"}\n"), Config{})
		if err != nil || c.Shed.Clients.Forwarded != want {
			t.Errorf("%s: %q, %v; want %q", name, c.Shed.Clients.Forwarded, err, want)
		}
	}
}
