package pumpkin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheBreakGlassFileRulesWhileItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pumpkin.json")
		write := func(content string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, time.Now(), time.Now()); err != nil { // the bubble's time
				t.Fatal(err)
			}
			time.Sleep(fileEvery)
			synctest.Wait()
		}
		p := open(t, Config{File: file})
		put(t, p, "manual", off("By hand.", 1, "search"))

		write(`{"severity":"critical","message":{"en":"All down."},"features":{"pay":{"off":1}}}`)
		d := read(t, p)
		if len(d.Items) != 1 || d.Items[0].ID != "file" || d.Items[0].NoticeRev != 2 || d.Rev != 2 || isOff(p, "search", "c") || !isOff(p, "pay", "c") {
			t.Fatalf("the file does not rule: %+v", d)
		}
		if s := p.Status(); !s.ByFile || s.Active[0].Origin != FromFile {
			t.Errorf("status %+v", s)
		}
		if words, after, off := p.FeatureOff("pay", "c"); !off || words != "All down." || after < 15*time.Second || after > 18*time.Second {
			t.Errorf("%q %v %v", words, after, off)
		}
		// What is done meanwhile is done beneath it.
		w := call(p, "PUT", "/items/later", body(""))
		if answers(t, w, 200, ""); !strings.Contains(w.Body.String(), `"overridden":true`) || read(t, p).Rev != 2 {
			t.Errorf("%s", w.Body)
		}
		if w := call(p, "GET", "/items", ""); !strings.Contains(w.Body.String(), `"origin":"file"`) {
			t.Errorf("%s", w.Body)
		}
		// What cannot be understood changes nothing, and is said once.
		tag := poll(p, "GET").Header().Get("Etag")
		for _, bad := range []string{"", "{", `{"items":{}`, `{"items":{},"x":1}`, `{"severity":"critical"}`, `{"template":"nowhere"}`,
			`{"template":"site-down","severity":"minor"}`, `{"items":{".x":{"template":"site-down"}}}`, `{"items":[]}`, "\xff",
			`{"severity":"critical","message":{"en":"x"},"starts_at":"2030-01-01T00:00:00Z"}`, strings.Repeat(" ", 17<<10)} {
			before := len(p.Audit(1000))
			write(bad)
			time.Sleep(10 * fileEvery)
			synctest.Wait()
			if got := poll(p, "GET").Header().Get("Etag"); got != tag {
				t.Errorf("%.40q changed the document", bad)
			}
			if n := len(p.Audit(1000)) - before; n != 1 {
				t.Errorf("%.40q: told %d times", bad, n)
			}
		}
		write(`{"items":{}}`)
		if d := read(t, p); d.Active || d.Rev != 3 {
			t.Errorf("an empty file of items does not clear: %+v", d)
		}
		write(`{"items":{"a":{"template":"site-down"},"b":{"severity":"minor","message":{"en":"b"},"reason":"r"}}}`)
		if d := read(t, p); len(d.Items) != 2 || d.Rev != 4 || !isOff(p, "anything", "c") {
			t.Errorf("two items: %+v", d)
		}
		write(`{"template":"degraded"}`)
		if d := read(t, p); len(d.Items) != 1 || d.Items[0].ID != modeID || d.Rev != 5 {
			t.Errorf("a prepared text: %+v", d)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(fileEvery)
		synctest.Wait()
		if d := read(t, p); len(d.Items) != 2 || d.Rev != 6 || !isOff(p, "search", "c") || p.Status().ByFile {
			t.Errorf("after the file: %+v", d)
		}
	})
}

func TestTheFileCountsFromTheFirstPollAndItsTTLFromWhenItWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pumpkin.json")
		if err := os.WriteFile(file, []byte(`{"severity":"major","message":{"en":"x"},"ttl":"10m"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		written := time.Now().Add(-4 * time.Minute)
		if err := os.Chtimes(file, written, written); err != nil {
			t.Fatal(err)
		}
		p := open(t, Config{File: file})
		if !read(t, p).Active {
			t.Fatal("not in force from the start")
		}
		time.Sleep(6*time.Minute - 1)
		synctest.Wait()
		if !read(t, p).Active {
			t.Fatal("ended early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if d := read(t, p); d.Active || d.Rev != 2 || !p.Status().ByFile {
			t.Fatalf("not ended: %+v", d)
		}
		if err := os.Chtimes(file, time.Now(), time.Now()); err != nil { // touched: again, from now on
			t.Fatal(err)
		}
		time.Sleep(fileEvery)
		synctest.Wait()
		if !read(t, p).Active {
			t.Error("touching the file does not renew it")
		}
		time.Sleep(24 * time.Hour)
	})
}
