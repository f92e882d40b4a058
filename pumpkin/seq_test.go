package pumpkin

import (
	"testing"
	"time"
)

func TestANewEpochSortsAfterTheOld(t *testing.T) {
	ahead := newULID(time.Now().Add(365 * 24 * time.Hour)) // of an instance whose clock was fast
	last := "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
	for _, after := range []string{"", "01ARYZ6S410000000000000000", ahead, newULID(time.Now())} {
		if got := NewEpoch(after); got <= after || !isEpoch(got) {
			t.Errorf("%q follows %q", got, after)
		}
	}
	if got := NewEpoch(last); got != last {
		t.Errorf("%q follows the last", got)
	}
}

func TestAStateThatWasOvertakenIsNotAdopted(t *testing.T) {
	p := open(t, Config{})
	adopt := func(seq uint64, ids ...string) {
		t.Helper()
		s := State{Epoch: testEpoch, Rev: seq, Seq: seq}
		for _, id := range ids {
			s.Items = append(s.Items, Item{
				Notice:    Notice{ID: id, Severity: Minor, Message: map[string]string{"en": "x"}, NoticeRev: 1},
				ExpiresAt: time.Now().Add(time.Hour), UpdatedAt: time.Now(), Origin: Manual, Actor: "a", Reason: "r",
			})
		}
		if _, err := p.Adopt(s); err != nil {
			t.Fatal(err)
		}
	}
	adopt(5, "x", "y")
	adopt(4, "x")
	if d := p.Document(); len(d.Items) != 2 || p.State().Seq != 5 {
		t.Errorf("%+v, seq %d", d, p.State().Seq)
	}
	adopt(6, "x")
	if d := p.Document(); len(d.Items) != 1 || p.State().Seq != 6 {
		t.Errorf("%+v, seq %d", d, p.State().Seq)
	}
	if m := Merge(State{Epoch: testEpoch, Seq: 9}, p.State()); m.Seq != 9 {
		t.Errorf("merged to seq %d", m.Seq)
	}
}

func TestAnEndSaysWhetherAPersonMadeIt(t *testing.T) {
	p := open(t, Config{})
	put(t, p, "x", entry("x"))
	if err := p.Raise("auto", "y", entry("y")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Clear("ada", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Lower("auto", "y"); err != nil {
		t.Fatal(err)
	}
	for _, c := range p.State().Cleared {
		if c.Auto != (c.ID == "y") {
			t.Errorf("%+v", c)
		}
	}
	if _, err := p.Adopt(p.State()); err != nil || !p.State().Cleared[1].Auto {
		t.Errorf("%v, %+v", err, p.State().Cleared)
	}
}
