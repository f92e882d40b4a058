package pumpkin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sharedStore is a Store in memory, for several instances, that can be down.
type sharedStore struct {
	mu     sync.Mutex
	text   []byte
	down   bool
	before func() // called once, before a write is compared: another writer is quicker

	members []*Pumpkin
	told    int
}

var errDown = errors.New("connection refused")

func (s *sharedStore) Update(_ context.Context, apply func(State) (State, error)) (State, error) {
	for {
		s.mu.Lock()
		down, text, before := s.down, s.text, s.before
		s.before = nil
		s.mu.Unlock()
		if down {
			return State{}, errDown
		}
		var state State
		if text != nil {
			var err error
			if state, err = ParseState(text); err != nil {
				return State{}, err
			}
		}
		next, err := apply(state)
		if err != nil {
			return State{}, err
		}
		if before != nil {
			before()
		}
		made, err := json.Marshal(next)
		if err != nil {
			return State{}, err
		}
		s.mu.Lock()
		if string(s.text) != string(text) {
			s.mu.Unlock()
			continue // somebody was quicker
		}
		s.text = made
		s.mu.Unlock()
		for _, p := range s.members {
			if _, err := p.Adopt(next); err != nil {
				return State{}, err
			}
		}
		return next, nil
	}
}

func (s *sharedStore) Changed(State) {
	s.mu.Lock()
	s.told++
	s.mu.Unlock()
}

// instances are Pumpkins that share a store.
func instances(t *testing.T, n int) (*sharedStore, []*Pumpkin) {
	t.Helper()
	s := &sharedStore{}
	for i := range n {
		p, err := newPumpkin(Config{Token: testToken, Logger: slog.New(slog.DiscardHandler)}, fmt.Sprintf("01JTESTTESTTESTTESTTESTTE%d", i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		p.Join(s)
		s.members = append(s.members, p)
	}
	return s, s.members
}

func TestInstancesAgreeToTheByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := instances(t, 3)
		agree := func(rev uint64) {
			t.Helper()
			synctest.Wait()
			first := poll(all[0], "GET")
			for i, p := range all {
				w := poll(p, "GET")
				if w.Body.String() != first.Body.String() || w.Header().Get("Etag") != first.Header().Get("Etag") || read(t, p).Rev != rev {
					t.Fatalf("instance %d at rev %d, want %d:\n%s%s", i, read(t, p).Rev, rev, w.Body, first.Body)
				}
			}
		}
		answers(t, call(all[2], "PUT", "/items/x", body(`,"ttl":"10m"`)), 200, "") // the store is empty: this one's epoch
		agree(1)
		answers(t, call(all[0], "PUT", "/items/y", body(`,"ttl":"20m"`)), 200, "")
		agree(2)
		time.Sleep(9 * time.Minute)
		answers(t, call(all[1], "PUT", "/items/x", body(`,"ttl":"10m"`)), 200, "") // extends it everywhere, and changes nothing
		agree(2)
		time.Sleep(10*time.Minute - 1)
		agree(2)
		time.Sleep(time.Nanosecond)
		agree(3) // x has ended, everywhere at once and as the same rev
		answers(t, call(all[1], "DELETE", "/items/y", ""), 204, "")
		agree(4)
		if s.told == 0 {
			t.Error("the store is not told of changes")
		}
	})
}

func TestAWriteThatLosesTheRaceIsJudgedAnew(t *testing.T) {
	s, all := instances(t, 2)
	call(all[0], "PUT", "/items/x", body(""))
	tag := call(all[0], "GET", "/items", "").Header().Get("ETag")
	s.before = func() { call(all[1], "PUT", "/items/y", body("")) }
	answers(t, call(all[0], "PUT", "/items/x", body(`,"severity":"minor"`[:0]), "If-Match", tag), 412, StaleRev)
	if d := read(t, all[0]); d.Rev != 2 || len(d.Items) != 2 {
		t.Errorf("%+v", d)
	}
	s.before = func() { call(all[1], "DELETE", "/items/y", "") }
	answers(t, call(all[0], "PUT", "/items/z", body("")), 200, "") // without a condition both writes stand
	if d := read(t, all[1]); d.Rev != 4 || len(d.Items) != 2 {
		t.Errorf("%+v", d)
	}
	answers(t, call(all[0], "PUT", "/items/z", body(`,"ttl":"25h"`)), 422, InvalidField) // a refusal is no failure of the store
}

func TestAStoreThatIsDownIsNoReasonToBeSilent(t *testing.T) {
	s, all := instances(t, 2)
	call(all[0], "PUT", "/items/x", body(""))
	s.down = true
	w := call(all[0], "PUT", "/items/here", body(""))
	answers(t, w, 202, "")
	if !strings.Contains(w.Body.String(), `"applied":"local"`) || len(read(t, all[0]).Items) != 2 || len(read(t, all[1]).Items) != 1 {
		t.Errorf("%s", w.Body)
	}
	answers(t, call(all[0], "PUT", "/mode", `{"on":true,"template":"site-down","reason":"fire"}`), 202, "")
	answers(t, call(all[0], "PUT", "/force_off/x", `{"reason":"r"}`), 202, "")
	answers(t, call(all[0], "DELETE", "/items/x", ""), 204, "")
	answers(t, call(all[0], "PUT", "/items/bad", body(`,"ttl":"25h"`)), 422, InvalidField)
	if r := all[0].Audit(10)[1]; r.Applied != "local" || r.Action != "delete" {
		t.Errorf("audited as %+v", r)
	}
	answers(t, call(all[1], "PUT", "/items/there", body("")), 202, "")
	// When it is back, what both sides did is joined.
	s.down = false
	if all[0].Status().Unshared != 4 || all[1].Status().Unshared != 1 {
		t.Errorf("unshared: %d and %d", all[0].Status().Unshared, all[1].Status().Unshared)
	}
	for _, p := range all {
		if err := p.Resync(t.Context()); err != nil || p.Status().Unshared != 0 {
			t.Fatalf("%v, %d unshared", err, p.Status().Unshared)
		}
	}
	a, b := read(t, all[0]), read(t, all[1])
	var ids []string
	for _, n := range a.Items {
		ids = append(ids, n.ID)
	}
	if fmt.Sprint(ids) != "[mode here there]" || a.Rev < b.Rev && b.Rev < 4 {
		t.Errorf("joined: %v", ids)
	}
	if x, y := poll(all[0], "GET").Body.String(), poll(all[1], "GET").Body.String(); x != y {
		t.Errorf("the instances differ:\n%s%s", x, y)
	}
}
