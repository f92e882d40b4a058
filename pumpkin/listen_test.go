package pumpkin

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestOtherMachinesAreLetNearOnlyWithATokenOfOnesOwn(t *testing.T) {
	for addr, loopback := range map[string]bool{
		"127.0.0.1:9180": true, "127.8.8.8:1": true, "[::1]:9180": true, "localhost:9180": true, "[::ffff:127.0.0.1]:1": true, "unix:/x": true,
		"0.0.0.0:9180": false, ":9180": false, "[::]:9180": false, "10.0.0.1:9180": false, "admin.example:9180": false, "localhost.example:1": false,
	} {
		if err := checkAdminAddress(addr, false); errors.Is(err, ErrNeedsToken) == loopback {
			t.Errorf("%s: %v", addr, err)
		}
		if err := checkAdminAddress(addr, true); err != nil {
			t.Errorf("%s with a token: %v", addr, err)
		}
	}
	if l, err := ListenAdmin(":0", false); l != nil || !errors.Is(err, ErrNeedsToken) {
		t.Errorf("%v, %v", l, err)
	}
	l, err := ListenAdmin("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if l, err := ListenAdmin("nonsense", false); err == nil {
		l.Close()
		t.Error("listens on nonsense")
	}
}

func TestTheAdminSocketIsTheOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	l, err := ListenAdmin("unix:"+path, false)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if l, err := ListenAdmin("unix:"+path, false); err == nil {
		l.Close()
		t.Error("took over a socket that is listened on")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as if the process had died
	l.Close()
	l, err = ListenAdmin("unix:"+path, false)
	if err != nil {
		t.Fatalf("a socket that was left behind is in the way: %v", err)
	}
	l.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := ListenAdmin("unix:"+path, false); err == nil {
		l.Close()
		t.Error("replaced a file that is no socket")
	}
	if content, err := os.ReadFile(path); errors.Is(err, fs.ErrNotExist) || string(content) != "precious" {
		t.Error("deleted a file that is no socket")
	}
}
