package pumpkin

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/testlog"
)

func TestAScheduledItemStartsAndEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		start := time.Now().Add(2 * time.Hour)
		w := call(p, "PUT", "/items/upgrade", body(`,"features":{"search":{"off":1}},"ttl":"30m","starts_at":"`+start.Format(time.RFC3339Nano)+`"`))
		answers(t, w, 200, "")
		if !strings.Contains(w.Body.String(), `"changed":false`) || read(t, p).Rev != 0 || isOff(p, "search", "c") {
			t.Errorf("in force before its start: %s", w.Body)
		}
		if w := call(p, "GET", "/items/upgrade", ""); !strings.Contains(w.Body.String(), `"notice_rev":0`) || p.Status().Scheduled != 1 {
			t.Errorf("it is not to be seen: %s", w.Body)
		}
		time.Sleep(2*time.Hour - 1)
		synctest.Wait()
		if read(t, p).Active {
			t.Fatal("started early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		d := p.current.Load().board.document()
		if !d.Active || d.Rev != 1 || d.Items[0].NoticeRev != 1 || d.PollAfter != 15 || !isOff(p, "search", "c") {
			t.Fatalf("not started: %+v", d)
		}
		time.Sleep(30*time.Minute - 1)
		synctest.Wait()
		if !read(t, p).Active {
			t.Fatal("the ttl does not count from the start")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if d := read(t, p); d.Active || d.Rev != 2 {
			t.Errorf("not ended: %+v", d)
		}
	})
}

func TestAScheduledItemMayBeChangedMovedAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		at := func(d time.Duration) string {
			return body(`,"ttl":"1h","starts_at":"` + time.Now().Add(d).Format(time.RFC3339Nano) + `"`)
		}
		answers(t, call(p, "PUT", "/items/x", at(-30*time.Minute)), 200, "") // begun half an hour ago: the other half is left
		h, _ := p.current.Load().board.find("x")
		if left := time.Until(h.expires); left != 30*time.Minute || !read(t, p).Active {
			t.Errorf("%v left", left)
		}
		answers(t, call(p, "PUT", "/items/x", at(-time.Hour)), 422, InvalidField) // over
		answers(t, call(p, "PUT", "/items/x", at(time.Minute)), 200, "")          // moved to later: not in force until then
		if read(t, p).Active {
			t.Error("still in force")
		}
		answers(t, call(p, "PUT", "/items/x", at(30*24*time.Hour)), 200, "")
		answers(t, call(p, "PUT", "/items/x", at(30*24*time.Hour+1)), 422, InvalidField)
		answers(t, call(p, "DELETE", "/items/x", ""), 204, "")
		time.Sleep(31 * 24 * time.Hour)
		synctest.Wait()
		if d := read(t, p); d.Active || d.Rev != 2 {
			t.Errorf("a deleted item came back: %+v", d)
		}
	})
}

func TestScheduledItemsCountTowardsTheBounds(t *testing.T) {
	p := open(t, Config{})
	later := `,"starts_at":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"`
	for i := range maxItems {
		more := ""
		if i%2 == 0 {
			more = later
		}
		answers(t, call(p, "PUT", fmt.Sprintf("/items/i%d", i), body(more)), 200, "")
	}
	answers(t, call(p, "PUT", "/items/more", body(later)), 422, TooManyItems)
	answers(t, call(p, "PUT", "/items/i0", body("")), 200, "") // moved, not added
	long := `{"severity":"minor","reason":"r","message":{"en":"` + strings.Repeat("<", 280) + `","de":"` + strings.Repeat("<", 280) + `"}` + later + `}`
	answers(t, call(p, "PUT", "/items/i0", long), 422, DocumentTooLarge)
}

// A warning comes once, when four fifths of the time are over, and again after an extension; it changes nothing.
func TestTheEndIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Log
		p := open(t, Config{Logger: log.Logger()})
		e := entry("x")
		e.TTL = 10 * time.Minute
		put(t, p, "x", e)
		tag := poll(p, "GET").Header().Get("Etag")
		for round := range 2 {
			time.Sleep(8*time.Minute - 1)
			synctest.Wait()
			if strings.Count(log.String(), "ends soon") != round || p.Status().EndingSoon != 0 {
				t.Fatal("warned early")
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n := strings.Count(log.String(), "ends soon"); n != round+1 || p.Status().EndingSoon != 1 {
				t.Fatalf("%d warnings", n)
			}
			if got := poll(p, "GET").Header().Get("Etag"); got != tag {
				t.Error("the warning changed the document")
			}
			put(t, p, "x", e)
		}
	})
}

// Instances that look at different times must count the same revs: what ends at two moments is two changes, seen late or not.
func TestRevsDoNotDependOnWhenOneLooks(t *testing.T) {
	fill := func() board {
		b := newBoard(testEpoch, "en", 15, 60)
		for i, id := range []string{"a", "b", "c", "d"} {
			e := entry(id)
			e.TTL = time.Duration(1+i/2) * time.Minute // a and b end together
			if id == "d" {
				e.StartsAt = start.Add(90 * time.Second)
			}
			var err error
			if b, err = b.put(start, id, e); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	late, _ := fill().advance(start.Add(time.Hour))
	often := fill()
	for s := range 3600 {
		often, _ = often.advance(start.Add(time.Duration(s+1) * time.Second))
	}
	if late.rev != often.rev || !bytes.Equal(late.body, often.body) || late.rev != 3+1+1+1+1 {
		t.Errorf("looking once: rev %d, often: rev %d", late.rev, often.rev)
	}
}
