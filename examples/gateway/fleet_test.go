package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/wait"
)

const byAddressFile = "clients: {identify: [api_key, ip]}\nlimits: [{name: r, token_bucket: {capacity: 5, refill: 1/day}, per: ip}]\n"

// Labels are free: whoever makes up another for each request has no more than one quota of his address, not one of each member.
func TestMadeUpKeysBuyNoQuotaOfEachMember(t *testing.T) {
	all := fleet(t, 3, byAddressFile)
	passed := 0
	for i := range 30 {
		res, _ := get(t, all[i%3].url("proxy", "/"), "X-API-Key", fmt.Sprintf("made-up-%d", i))
		if res.StatusCode == http.StatusOK {
			passed++
		}
	}
	if passed != 5 {
		t.Errorf("%d passed, want 5", passed)
	}
}

// An event stream that was passed on ends with the gateway that passed it on, too.
func TestStreamsThatWerePassedOnEndWithTheGateway(t *testing.T) {
	all := fleet(t, 2, fleetFile)
	back := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for _, g := range all {
		g.proxy.table.Store(newTable(nil, mustUpstream(t, back)))
	}
	key := keyOf(t, all[0], all[1])
	res, err := http.DefaultClient.Do(request(t, "GET", all[0].url("proxy", "/"), "", "X-API-Key", key))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	if line, err := lines.ReadString('\n'); line != "data: 1\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if n, m := all[0].proxy.streams.len(), all[1].proxy.streams.len(); n != 1 || m != 1 {
		t.Errorf("%d streams where it was asked for and %d where it was decided, want 1 and 1", n, m)
	}
	all[0].proxy.streams.end()
	if rest, err := io.ReadAll(lines); err != nil || string(rest) != "\n" {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
	wait.Until(t, "ended at the other", func() bool { return all[1].proxy.streams.len() == 0 })
}

// keyOf finds a key that asks decides to be the business of owner.
func keyOf(t *testing.T, asks, owner *gateway) string {
	t.Helper()
	for i := range 1000 {
		if k := fmt.Sprintf("client-%d", i); pick(asks.proxy.peers.members, "key:"+k).name == owner.proxy.peers.self.name {
			return k
		}
	}
	t.Fatal("no key is the other's")
	return ""
}

// While one request finds out whether a peer is back, nobody else waits for it.
func TestOneRequestFindsOutWhetherAPeerIsBack(t *testing.T) {
	m, now := &member{}, time.Unix(1_800_000_000, 0)
	expect := func(after time.Duration, worth, probe bool) {
		t.Helper()
		if w, p := m.worthAsking(now.Add(after)); w != worth || p != probe {
			t.Errorf("after %v: %v, %v, want %v, %v", after, w, p, worth, probe)
		}
	}
	expect(0, true, false)
	m.rest.Store(now.Add(peerRest).UnixNano())
	expect(peerRest-1, false, false)
	expect(peerRest, true, true)
	expect(peerRest, false, false)
	expect(2*peerRest+connectWithin-1, false, false)
	expect(2*peerRest+connectWithin, true, true)
}

// A peer that is back is found out by that one request, however long its answer takes.
func TestAPeerThatIsBackIsAskedAgain(t *testing.T) {
	all := fleet(t, 2, fleetFile)
	key := keyOf(t, all[0], all[1])
	rest := &all[0].proxy.peers.member(t, all[1]).rest
	rest.Store(1) // it has been away until then
	if _, body := get(t, all[0].url("proxy", "/"), "X-API-Key", key); !strings.HasPrefix(body, "1 ") {
		t.Errorf("decided by %q", body)
	}
	if rest.Load() != 0 {
		t.Error("it still counts as away")
	}
}

func (p *peers) member(t *testing.T, other *gateway) *member {
	t.Helper()
	for _, m := range p.members {
		if m.name == other.proxy.peers.self.name {
			return m
		}
	}
	t.Fatal("it is no member")
	return nil
}

// A reload cannot take away what tells the clients of another proxy apart.
func TestAReloadLeavesNobodyWithTheProxysAddress(t *testing.T) {
	path := written(t, "clients: {trusted_proxies: [127.0.0.0/8]}\nlimits: [{name: r, token_bucket: {capacity: 2, refill: 1/day}, per: ip}]\n")
	p := started(t, "-config", path, "-check-listen", "127.0.0.1:0", "-upstream", "http://127.0.0.1:1")
	writeFile(t, path, "limits: [{name: r, token_bucket: {capacity: 1, refill: 1/day}, per: ip}]\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	p.hears("everybody's address")
	p.hears("not taken over")
	for i, want := range []int{200, 200, 403} {
		res, _ := get(t, p.addrs["check"]+"/nginx", "X-Original-URI", "/", "X-Forwarded-For", "203.0.113.7")
		if res.StatusCode != want {
			t.Errorf("question %d: %d, want %d", i, res.StatusCode, want)
		}
	}
	p.ends()
}
