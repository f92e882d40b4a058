package pumpkin

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// What is in the break-glass file's place may be anything. A pipe would be waited for without end, also by Close, and the file
// that is put there later would never be seen.
func TestNothingInPlaceOfTheBreakGlassFileIsWaitedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pumpkin.json")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{File: file})
		if r := p.Audit(1); len(r) != 1 || r[0].Action != "file_bad" || !strings.Contains(r[0].Detail, "is no file but a pipe") {
			t.Errorf("%+v", r)
		}
		os.Remove(file)
		os.WriteFile(file, []byte(`{"severity":"critical","message":{"en":"All down."}}`), 0o600)
		time.Sleep(2 * fileEvery)
		synctest.Wait()
		if d := read(t, p); len(d.Items) != 1 {
			t.Errorf("the file that came later does not rule: %+v", d)
		}
	})
}

// A disk that hangs holds up no switch: the record is kept in memory, and written when the file takes it.
func TestAnAuditFileThatHangsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{}) // stands for the disk: a system call would keep the bubble's time from passing
		var mu sync.Mutex
		var lines []string
		write := func(b []byte) error {
			<-stuck
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, string(b))
			return nil
		}
		var q auditQueue
		begin := time.Now()
		if err := q.put([]byte("1"), write); !errors.Is(err, errAuditSlow) || time.Since(begin) != auditPatience {
			t.Errorf("%v after %v, want an error after %v", err, time.Since(begin), auditPatience)
		}
		for range auditWaiting {
			if err := q.put([]byte("2"), write); !errors.Is(err, errAuditSlow) {
				t.Fatal(err)
			}
		}
		if err := q.put([]byte("3"), write); !errors.Is(err, errAuditFull) {
			t.Error(err)
		}
		if d := time.Since(begin); d != auditPatience {
			t.Errorf("those that came later waited too: %v", d)
		}
		q.close()
		close(stuck)
		synctest.Wait()
		if err := q.put([]byte("4"), write); err != nil {
			t.Error(err)
		}
		if len(lines) != auditWaiting+2 || lines[0] != "1" || lines[len(lines)-1] != "4" {
			t.Errorf("%d lines, %q to %q", len(lines), lines[0], lines[len(lines)-1])
		}
	})
	// The same with a real file that takes nothing: a pipe without a reader.
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	p := open(t, Config{AuditFile: file})
	os.Remove(file)
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		put(t, p, id, off("x", 1, id))
	}
	if n := p.Status().AuditFailures; n != 3 || len(p.Audit(10)) != 3 {
		t.Errorf("%d failures, %d records", n, len(p.Audit(10)))
	}
	reader, err := os.OpenFile(file, os.O_RDWR, 0) // now it takes them; for reading alone it would end between two records
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		if strings.Contains(lines.Text(), `"id":"c"`) {
			break
		}
	}
}
