package shed

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheStatusTellsWhoStandsInTheLine: by priority, the most greedy client first, and nobody's name.
func TestTheStatusTellsWhoStandsInTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{MaxWait: time.Second})
		cfg.Routes = []Route{{Name: "vital", Priority: CriticalPlus}, {Name: "batch", Priority: Sheddable}}
		s := open(t, cfg)
		running := admitted(t, s, Request{Client: "ip:192.0.2.1"})
		var all sync.WaitGroup
		wait := func(client, route string) {
			all.Go(func() {
				if p, err := s.Admit(t.Context(), Request{Client: client, Route: route}); err == nil {
					p.Done(Success)
				}
			})
		}
		for range 3 {
			wait("ip:192.0.2.1", "batch")
		}
		wait("principal:ann", "")
		for i := range 7 {
			wait(fmt.Sprint("key:", i), "vital")
		}
		synctest.Wait()
		line := s.Status().Line
		if line.Waiting["critical_plus"] != 7 || line.Waiting["critical"] != 1 || line.Waiting["sheddable"] != 3 || len(line.Waiting) != 4 {
			t.Errorf("waiting %v", line.Waiting)
		}
		if len(line.Clients) != namedClients || line.Clients[0].Waiting != 3 || line.Clients[0].Priority != "sheddable" {
			t.Errorf("clients %+v", line.Clients)
		}
		text, err := json.Marshal(s.Status())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"192.0.2.1", "ann", "key:"} {
			if strings.Contains(string(text), name) {
				t.Errorf("the status shows %q", name)
			}
		}
		if again := s.Status().Line; again.Clients[0] != line.Clients[0] {
			t.Error("two views of one Shedder cannot be compared")
		}
		running.Done(Success)
		all.Wait()
		if line := s.Status().Line; len(line.Clients) != 0 || len(line.NewestFirst) != 0 {
			t.Errorf("an empty line: %+v", line)
		}
	})
}

// TestRoutesCarryTheirPriorityIntoTheLine: who is served first is what the configuration says, not who came first.
func TestRoutesCarryTheirPriorityIntoTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed(1, Queue{MaxWait: time.Second})
		cfg.Routes = []Route{{Name: "vital", Priority: CriticalPlus}, {Name: "batch", Priority: Sheddable}}
		s := open(t, cfg)
		running := admitted(t, s, Request{Client: "ann"})
		var order []string
		var all sync.WaitGroup
		for _, route := range []string{"batch", "", "vital"} {
			all.Go(func() {
				p, err := s.Admit(t.Context(), Request{Client: "ann", Route: route})
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, route) // one runs at a time
				time.Sleep(ms)
				p.Done(Success)
			})
			synctest.Wait()
		}
		running.Done(Success)
		all.Wait()
		if got := strings.Join(order, ","); got != "vital,,batch" {
			t.Errorf("served in the order %q", got)
		}
	})
}
