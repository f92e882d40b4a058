package pumpkin

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustPut(t testing.TB, b board, now time.Time, id string, e Entry) board {
	t.Helper()
	b, err := b.put(now, id, e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// full is a board with all that a State can hold.
func full(t testing.TB) board {
	b := newBoard(testEpoch, "en", 15, 60)
	b = mustPut(t, b, start, "a", off("first", 0.25, "x"))
	b = mustPut(t, b, start, "gone", entry("gone"))
	b = b.clear(start, "gone")
	later := entry("later")
	later.StartsAt, later.Ticket = start.Add(time.Hour), "T"
	b = mustPut(t, b, start, "later", later)
	b, err := b.raise(start, held{notice: Notice{ID: "auto"}, actor: "lag"}, off("busy", 1, "y"))
	if err != nil {
		t.Fatal(err)
	}
	b, err = b.forceOff(start, handsOff{id: "z", until: start.Add(time.Hour), updated: start, actor: "ada", reason: "r"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What one instance has, another one shows to the byte, and so do both when time goes on.
func TestAStateTravelsWhole(t *testing.T) {
	one := full(t)
	text, err := json.Marshal(one.state())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseState(text)
	if err != nil {
		t.Fatal(err)
	}
	two, err := newBoard("00000000000000000000000000", "en", 15, 60).adopt(start, s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(two.state())
	if err != nil || !bytes.Equal(text, again) || !bytes.Equal(one.body, two.body) {
		t.Fatalf("%v\n%s\n%s", err, text, again)
	}
	for _, later := range []time.Duration{time.Minute, 59 * time.Minute, time.Hour, 90 * time.Minute, 2 * time.Hour} {
		a, _ := one.advance(start.Add(later))
		b, _ := two.advance(start.Add(later))
		if !bytes.Equal(a.body, b.body) || a.identity() != b.identity() {
			t.Errorf("after %v:\n%s%s", later, a.body, b.body)
		}
	}
}

func TestAdoptNeverGoesBack(t *testing.T) {
	b := full(t)
	old := b.state()
	b = mustPut(t, b, start, "b", entry("second"))

	got, err := b.adopt(start, old) // behind, and says something else: the rev grows
	if err != nil || got.rev != b.rev+1 || len(got.held) != 2 {
		t.Errorf("%v, rev %d after %d", err, got.rev, b.rev)
	}
	same := b.state()
	same.Rev = 0 // behind, and says the same: nothing changes
	if got, err := b.adopt(start, same); err != nil || got.rev != b.rev || !bytes.Equal(got.body, b.body) {
		t.Errorf("%v, rev %d after %d", err, got.rev, b.rev)
	}
	ahead := b.state()
	ahead.Rev += 7
	if got, err := b.adopt(start, ahead); err != nil || got.rev != b.rev+7 {
		t.Errorf("%v, rev %d", err, got.rev)
	}
	newer := State{Epoch: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", Rev: 3}
	if got, err := b.adopt(start, newer); err != nil || got.rev != 3 || got.epoch != newer.Epoch || len(got.held) != 0 {
		t.Errorf("%v, %s", err, got.identity())
	}
	older := State{Epoch: "00000000000000000000000000", Rev: 99}
	if got, err := b.adopt(start, older); !errors.Is(err, ErrOlderEpoch) || !bytes.Equal(got.body, b.body) {
		t.Errorf("%v, %s", err, got.identity())
	}
}

// A Pumpkin that has just started takes the lineage of the others, unless somebody was told of its own.
func TestANewcomerTakesTheOthersLineage(t *testing.T) {
	s := full(t).state()
	for _, polled := range []bool{false, true} {
		p, err := newPumpkin(Config{}, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		if polled {
			poll(p, "GET")
		}
		_, err = p.Adopt(s)
		if errors.Is(err, ErrOlderEpoch) != polled {
			t.Errorf("polled %v: %v", polled, err)
		}
		if _, err := p.Adopt(Merge(s, p.State())); err != nil {
			t.Errorf("polled %v: %v", polled, err)
		}
		if got := p.State(); (got.Epoch == s.Epoch) == polled {
			t.Errorf("polled %v: epoch %s", polled, got.Epoch)
		}
	}
}

func TestAStateThatCouldNotHaveBeenWrittenIsRefused(t *testing.T) {
	b := full(t)
	for name, spoil := range map[string]func(*State){
		"epoch":      func(s *State) { s.Epoch = "x" },
		"script":     func(s *State) { s.Items[0].URL = "javascript:alert(1)" },
		"override":   func(s *State) { s.Items[0].Message = map[string]string{"en": "\u202e"} },
		"share":      func(s *State) { s.Items[0].Features = map[string]Feature{"x": {Off: 2}} },
		"id":         func(s *State) { s.Items[0].ID = "../x" },
		"twice":      func(s *State) { s.Items = append(s.Items, s.Items[0]) },
		"for ever":   func(s *State) { s.Items[0].ExpiresAt = start.Add(10000 * time.Hour) },
		"origin":     func(s *State) { s.Items[0].Origin = FromFile },
		"no origin":  func(s *State) { s.Items[0].Origin = "" },
		"17 items":   func(s *State) { s.Items = slices.Repeat(s.Items, 6) },
		"many holds": func(s *State) { s.Holds = slices.Repeat(s.Holds, 17) },
	} {
		s := b.state()
		spoil(&s)
		got, err := b.adopt(start, s)
		if _, refused := errors.AsType[*Refusal](err); !refused || !bytes.Equal(got.body, b.body) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "{", `{"x":1}`, `[]`, `{} {}`, `{"items":[{"severity":7}]}`} {
		if _, err := ParseState([]byte(text)); err == nil {
			t.Errorf("%q is a state", text)
		}
	}
}

// TestMergeAgreesWithTheOrderOfWrites makes writes on two sides that do not see each other. Merged, either way round, the
// last write to each id counts, as if everything had happened on one board.
func TestMergeAgreesWithTheOrderOfWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sides := [2]board{newBoard(testEpoch, "en", 15, 60), newBoard(testEpoch, "en", 15, 60)}
		last := map[string]string{} // id → words, "" when cleared
		now := start
		for i := range rapid.IntRange(0, 20).Draw(t, "writes") {
			now = now.Add(time.Second)
			side := rapid.IntRange(0, 1).Draw(t, "side")
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			if rapid.Bool().Draw(t, "put") {
				words := string(rune('A' + i))
				b, err := sides[side].put(now, id, entry(words))
				if err != nil {
					t.Fatal(err)
				}
				sides[side], last[id] = b, words
			} else if _, there := sides[side].find(id); there {
				sides[side], last[id] = sides[side].clear(now, id), ""
			}
		}
		a, b := sides[0].state(), sides[1].state()
		one, two := Merge(a, b), Merge(b, a)
		x, _ := json.Marshal(one)
		y, _ := json.Marshal(two)
		if !bytes.Equal(x, y) {
			t.Fatalf("the order matters:\n%s\n%s", x, y)
		}
		got := map[string]string{}
		for _, it := range one.Items {
			got[it.ID] = it.Message["en"]
		}
		for id, words := range last {
			if got[id] != words {
				t.Fatalf("%s is %q, want %q\n%s", id, got[id], words, x)
			}
		}
		for i, s := range sides {
			next, err := s.adopt(now, one)
			if err != nil {
				t.Fatal(err)
			}
			if next.rev < s.rev || next.rev == s.rev && !bytes.Equal(next.body, s.body) && one.Rev > s.rev {
				t.Fatalf("side %d goes back from %d to %d", i, s.rev, next.rev)
			}
			z, _ := json.Marshal(Merge(next.state(), one))
			w, _ := json.Marshal(Merge(one, next.state()))
			if !bytes.Equal(z, w) {
				t.Fatalf("merging again is not settled\n%s\n%s", z, w)
			}
		}
	})
}

// FuzzState holds what must be true of whatever a store may hold: it is refused, or leads to a small sound document.
func FuzzState(f *testing.F) {
	text, err := json.Marshal(full(f).state())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(bytes.ReplaceAll(text, []byte(`"notice_rev":1`), []byte(`"notice_rev":18446744073709551615`)))
	f.Add([]byte(`{"epoch":"01JTESTTESTTESTTESTTESTTES","rev":18446744073709551615,"items":[]}`))
	f.Add([]byte(`{"epoch":"7ZZZZZZZZZZZZZZZZZZZZZZZZZ","rev":0}`))
	f.Add([]byte(`{"items":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseState(data)
		if err != nil {
			return
		}
		b := mustPut(t, newBoard(testEpoch, "en", 15, 60), start, "x", entry("x"))
		next, err := b.adopt(start, s)
		if err != nil {
			if !bytes.Equal(next.body, b.body) {
				t.Fatal("a refused state changed something")
			}
			return
		}
		if len(next.body) > maxDocument || next.document().Active != (len(next.held) > 0) {
			t.Fatalf("%s", next.body)
		}
		if next.epoch == b.epoch && next.rev < b.rev {
			t.Fatalf("rev %d after %d", next.rev, b.rev)
		}
		if _, err := next.adopt(start, next.state()); err != nil {
			t.Fatalf("its own state is refused: %v", err)
		}
	})
}
