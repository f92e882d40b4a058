package pumpkin

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/testlog"
)

// urn is a Quorum in memory.
type urn struct {
	mu      sync.Mutex
	ballots map[string]string
	away    bool
}

type voter struct {
	*urn
	name string
}

func (v voter) Vote(ballot string) (string, map[string]string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ballots[v.name] = ballot
	return v.name, maps.Clone(v.ballots), !v.away
}

func TestNeitherOneOfFourNorAnyoneAloneSpeaksForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &urn{ballots: map[string]string{}}
		store := &sharedStore{}
		var all []*automated
		for i := range 4 {
			a := &automated{log: new(testlog.Log), start: time.Now()}
			p, err := newPumpkin(busyConfig(a.log), testEpoch)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			a.Pumpkin = p
			p.Join(store)
			store.members = append(store.members, p)
			a.gauge.set("pressure", 0)
			all = append(all, a)
			a.join(t, voter{u, fmt.Sprint(i)})
		}
		a := all[0]
		all[2].gauge.set("pressure", 1)
		a.at(10 * time.Minute)
		a.want(t, -1, "ok")
		if st := a.Auto.Status()[0]; st.Up != 1 || st.Needed != 2 || st.Instances != 4 || !st.Leads {
			t.Fatalf("%+v", st)
		}
		all[3].gauge.set("pressure", 1)
		a.at(10*time.Minute + 13*time.Second)
		for _, a := range all {
			if a.share() != 1 {
				t.Fatalf("%g off", a.share())
			}
		}
		if n := len(a.Audit(10)); n != 1 {
			t.Errorf("the leader wrote %d times", n)
		}
		if n := len(all[3].Audit(10)); n != 0 {
			t.Errorf("another one wrote %d times", n)
		}
		// The leader goes away; the next one carries on from where it stands.
		a.Auto.Close()
		u.mu.Lock()
		delete(u.ballots, "0")
		u.mu.Unlock()
		b := all[1]
		b.start = time.Now()
		b.at(20 * time.Minute)
		b.want(t, 1, "on")
		// While the votes are not known nothing is raised and nothing lowered; what has its reason here is kept.
		u.mu.Lock()
		u.away = true
		u.mu.Unlock()
		b.at(40 * time.Minute)
		b.want(t, 1, "on")
		for _, a := range all[2:] {
			a.gauge.set("pressure", 0)
		}
		b.at(43 * time.Minute)
		b.want(t, 1, "clearing")
		b.at(50 * time.Minute)
		b.want(t, -1, "ok") // by its end
		for _, a := range all[1:] {
			a.gauge.set("pressure", 1)
		}
		b.at(60 * time.Minute)
		b.want(t, -1, "pending")
	})
}

func TestHowManyAreNeeded(t *testing.T) {
	for live, need := range map[int]int{1: 1, 2: 2, 3: 2, 4: 2, 6: 2, 7: 3, 10: 3, 11: 4, 100: 30} {
		if got := count(make([]byte, live)).need; got != need {
			t.Errorf("%d of %d, want %d", got, live, need)
		}
	}
}
