package redispumpkin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/testlog"
	"github.com/spillway-go/spillway/pumpkin"
)

func TestAChangeIsKnownToAllAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b, c := redis.join(t, "a", ""), redis.join(t, "b", ""), redis.join(t, "c", "")
		synctest.Wait()
		a.put(t, "x", time.Minute)
		synctest.Wait() // no time passes
		b.sees(t, "x")
		c.put(t, "y", time.Hour)
		synctest.Wait()
		agree(t, a, b, c)
		a.sees(t, "x y")
		if _, err := b.Clear("ada", "y"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.sees(t, "x")
		time.Sleep(time.Minute)
		synctest.Wait()
		agree(t, a, b, c)
		a.sees(t, "")
		if n := a.Pumpkin.Status().Store.Reseeded; n != 0 {
			t.Errorf("%d states stored anew though nothing was lost", n)
		}
	})
}

func TestWithoutHintsAChangeIsKnownAfterOnePoll(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		redis.mute = true
		synctest.Wait()
		a.put(t, "x", time.Hour)
		synctest.Wait()
		b.sees(t, "")
		time.Sleep(3600 * time.Millisecond)
		synctest.Wait()
		b.sees(t, "x")
	})
}

// An extension changes nothing that is public, and has to arrive all the same.
func TestAnExtensionArrives(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		a.put(t, "x", time.Minute)
		rev := b.Rev()
		time.Sleep(50 * time.Second)
		a.put(t, "x", time.Minute)
		time.Sleep(50 * time.Second)
		synctest.Wait()
		agree(t, a, b)
		if b.sees(t, "x"); b.Rev() != a.Rev() || rev == b.Rev() && !strings.HasSuffix(rev, ".1") {
			t.Errorf("revs %s, %s, was %s", a.Rev(), b.Rev(), rev)
		}
	})
}

func TestOfTwoThatRaceNoneIsLost(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		synctest.Wait()
		a.link.before = func() { b.put(t, "y", time.Hour) }
		a.put(t, "x", time.Hour)
		synctest.Wait()
		agree(t, a, b)
		a.sees(t, "x y")
	})
}

func TestALostReplyIsNoSecondWrite(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		synctest.Wait()
		redis.set(func() { a.link.loseReply = true })
		a.put(t, "x", time.Hour) // here alone, for all it knows
		time.Sleep(4 * time.Second)
		synctest.Wait()
		agree(t, a, b)
		if s := a.Pumpkin.Status(); s.Unshared != 0 || len(s.Active) != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestALossIsNeverAllClear(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b, c := redis.join(t, "a", ""), redis.join(t, "b", ""), redis.join(t, "c", "")
		synctest.Wait()
		a.put(t, "x", time.Hour)
		synctest.Wait()
		before := a.Document()
		redis.set(func() { redis.state = stored{} })
		for range 60 { // at no moment is it clear
			time.Sleep(100 * time.Millisecond)
			a.sees(t, "x")
			b.sees(t, "x")
			c.sees(t, "x")
		}
		synctest.Wait()
		agree(t, a, b, c)
		after := a.Document()
		if after.Epoch <= before.Epoch || after.Rev <= before.Rev {
			t.Errorf("epoch %s rev %d, was %s rev %d", after.Epoch, after.Rev, before.Epoch, before.Rev)
		}
		if redis.state.seq < 2 {
			t.Errorf("stored again as %+v", redis.state)
		}
	})
}

// One that has just started knows nothing: what it writes into a Redis that has lost all must not become all there is.
func TestANewcomerDoesNotSpeakForAll(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		synctest.Wait()
		a.put(t, "x", time.Hour)
		synctest.Wait()
		redis.set(func() { redis.state = stored{} })
		c := redis.join(t, "c", "")
		synctest.Wait()
		c.sees(t, "")
		if redis.state != (stored{}) {
			t.Fatalf("one that knows nothing stored %+v", redis.state)
		}
		c.put(t, "y", time.Hour)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		agree(t, a, b, c)
		c.sees(t, "x y")
	})
}

func TestAnOlderStateIsBroughtUpToDate(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		synctest.Wait()
		a.put(t, "x", time.Hour)
		old := redis.state
		a.put(t, "y", time.Hour)
		if _, err := b.Clear("ada", "x"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		rev := a.Document().Rev
		redis.set(func() { redis.state = old }) // a replica took over that had not heard of it
		time.Sleep(6 * time.Second)
		synctest.Wait()
		agree(t, a, b)
		if a.sees(t, "y"); a.Document().Rev < rev {
			t.Errorf("rev fell from %d to %d", rev, a.Document().Rev)
		}
	})
}

// What somebody else has continued from an older state lacks an item that nobody has ended.
func TestALostItemIsPutBackIntoALaterState(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		synctest.Wait()
		a.put(t, "x", time.Hour)
		old := redis.state
		a.put(t, "y", time.Hour)
		synctest.Wait()
		redis.set(func() { redis.state = old; b.link.cut, a.link.cut = true, true })
		c := redis.join(t, "c", "")
		for _, id := range []string{"u", "v", "w"} {
			c.put(t, id, time.Hour)
		}
		redis.set(func() { b.link.cut, a.link.cut = false, false })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		agree(t, a, b, c)
		a.sees(t, "u v w x y")
	})
}

func TestAPartitionIsJoined(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		synctest.Wait()
		a.put(t, "x", time.Hour)
		a.put(t, "short", 10*time.Second)
		synctest.Wait()
		redis.set(func() { a.link.cut = true })
		a.put(t, "here", time.Hour)
		if _, err := a.Clear("ada", "x"); err != nil {
			t.Fatal(err)
		}
		b.put(t, "there", time.Hour)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		a.sees(t, "here")
		b.sees(t, "there x")
		if s := a.Pumpkin.Status(); s.Unshared != 2 || s.Store.Reachable || s.Store.Trouble == "" || s.Store.TroubleFor < 6 {
			t.Errorf("%+v", s.Store)
		}
		if r := a.Audit(5); r[2].Applied != "local" || r[2].Action != "delete" || r[3].Applied != "local" {
			t.Errorf("audited as %+v", r)
		}
		redis.set(func() { a.link.cut = false })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		agree(t, a, b)
		a.sees(t, "here there")
		if s := a.Pumpkin.Status(); s.Unshared != 0 || !s.Store.Reachable {
			t.Errorf("%+v", s.Store)
		}
		if log := a.log.String(); strings.Count(log, "cannot be read") != 1 || strings.Count(log, "can be asked again") != 1 {
			t.Errorf("logged:\n%s", log)
		}
	})
}

// Two sides that are full together hold more than fits: what automation has said goes first.
func TestWhatDoesNotFitIsLeftOutLeastFirst(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		synctest.Wait()
		a.put(t, "first", time.Hour)
		synctest.Wait()
		redis.set(func() { redis.state = stored{}; a.link.cut = true })
		// b's side begins a new lineage, a's keeps the old one.
		for _, id := range strings.Fields("b1 b2 b3 b4 b5 b6 b7 b8 b9") {
			b.put(t, id, time.Hour)
		}
		for _, id := range strings.Fields("a1 a2 a3 a4 a5") {
			a.put(t, id, time.Hour)
		}
		if err := a.Raise("auto", "auto1", entry("x", time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := b.Raise("auto", "auto2", entry("x", time.Hour)); err != nil {
			t.Fatal(err)
		}
		redis.set(func() { a.link.cut = false })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(b.Document().Items); n > 16 || n < 15 {
			t.Errorf("%d items", n)
		}
		for _, id := range []string{"first", "a1", "b9"} {
			if !strings.Contains(" "+b.ids()+" ", " "+id+" ") {
				t.Errorf("%s is lost: %s", id, b.ids())
			}
		}
	})
}

func TestAStartWithoutRedisBeginsWithTheSnapshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot.json")
	virtual(t, func(t *testing.T, redis *fake) {
		a := redis.join(t, "a", file)
		a.put(t, "x", time.Hour)
		a.put(t, "short", time.Minute)
		synctest.Wait()
		rev := a.Rev()
		a.close()
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", err, info)
		}
		other := redis.join(t, "other", "")
		n := node{link: &fakeLink{fake: redis, cut: true}, log: new(testlog.Log)}
		n = redis.joinBy(t, n, "a", file)
		if n.sees(t, "short x"); n.Rev() != rev {
			t.Errorf("begins at %s, was %s", n.Rev(), rev)
		}
		if _, err := other.Clear("ada", "x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		redis.set(func() { n.link.cut = false })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		agree(t, n, other)
		n.sees(t, "")
		// Leftovers of half a write are no obstacle, and what is no state is left aside.
		n.close()
		if err := os.WriteFile(file, []byte(`{"epoch":`), 0o600); err != nil {
			t.Fatal(err)
		}
		m := redis.join(t, "m", file)
		if m.sees(t, ""); !strings.Contains(m.log.String(), "cannot be used") {
			t.Errorf("logged %q", m.log)
		}
	})
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An instance that was polled before it heard of the others has shown its own epoch, which is newer: that becomes everybody's.
func TestOneThatHasBeenPolledBrings(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a := redis.join(t, "a", "")
		a.put(t, "x", time.Hour)
		time.Sleep(time.Second) // epochs are counted in milliseconds
		b := redis.joinBy(t, node{link: &fakeLink{fake: redis, cut: true}, log: new(testlog.Log)}, "b", "")
		pollOf(b.Pumpkin)
		epoch := b.Document().Epoch
		redis.set(func() { b.link.cut = false })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		agree(t, a, b)
		if a.sees(t, "x"); a.Document().Epoch != epoch {
			t.Errorf("epoch %s, want %s", a.Document().Epoch, epoch)
		}
	})
}

func TestWhatIsNoStateChangesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a := redis.join(t, "a", "")
		a.put(t, "x", time.Hour)
		for _, text := range []string{"", "{", `{"epoch":"x"}`, `{"epoch":"01ARYZ6S410000000000000000","rev":1,"seq":9,"items":[{"id":"?"}]}`} {
			redis.set(func() { redis.state = stored{"01ARYZ6S410000000000000000", 9, text} })
			time.Sleep(6 * time.Second)
			synctest.Wait()
			a.sees(t, "x")
		}
		a.put(t, "y", time.Hour)
		a.sees(t, "x y")
		if a.Pumpkin.Status().Store.Reachable {
			t.Error("nothing is said of it")
		}
	})
}

func TestVotesAreExchanged(t *testing.T) {
	virtual(t, func(t *testing.T, redis *fake) {
		a, b := redis.join(t, "a", ""), redis.join(t, "b", "")
		if _, _, ok := a.Vote("up"); ok {
			t.Error("knows what the others vote before it has asked")
		}
		b.Vote("down")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		for _, n := range []node{a, b} {
			if self, all, ok := n.Vote(map[string]string{"a": "up", "b": "down"}[n.c.Instance]); !ok || self != n.c.Instance || len(all) != 2 || all["a"] != "up" || all["b"] != "down" {
				t.Errorf("%s: %s %v %v", n.c.Instance, self, all, ok)
			}
		}
		if n := a.Pumpkin.Status().Store.Instances; n != 2 {
			t.Errorf("%d instances", n)
		}
		b.Store.Close()
		time.Sleep(4 * time.Second)
		if _, all, _ := a.Vote("up"); len(all) != 1 {
			t.Errorf("one that is gone votes: %v", all)
		}
		redis.set(func() { a.link.cut = true })
		time.Sleep(11 * time.Second)
		if _, _, ok := a.Vote("up"); !ok {
			t.Error("has forgotten too soon")
		}
		time.Sleep(8 * time.Second)
		if _, _, ok := a.Vote("up"); ok {
			t.Error("goes on with what is no longer known")
		}
	})
}

func TestConfigurationIsRefused(t *testing.T) {
	p, err := pumpkin.New(pumpkin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for want, c := range map[string]Config{
		"there is no Client": {},
		"Namespace":          {Client: lazyClient(t), Namespace: "a b"},
		"Instance":           {Client: lazyClient(t), Instance: "}"},
		"Poll is 1ns":        {Client: lazyClient(t), Poll: 1},
		"Timeout is 1m0s":    {Client: lazyClient(t), Timeout: time.Minute},
		"snapshot file":      {Client: lazyClient(t), SnapshotFile: filepath.Join(t.TempDir(), "no", "file")},
	} {
		if s, err := Join(p, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
			s.Close()
		}
	}
}
