package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Nodes are the servers of a cluster: three masters, then as many replicas, replica i of master i.
type Nodes struct {
	Nodes []*Server
	ids   []string
}

const masters = 3

// slots is how many slots a cluster has.
const slots = 16384

// Cluster starts six servers, three masters with a replica each, and returns when all of them agree on it and the replicas
// hold the data. A master that dies is replaced within about two seconds.
func Cluster(t testing.TB) *Nodes {
	t.Helper()
	n, err := newCluster(t.TempDir(), 1, time.Second)
	if n != nil {
		t.Cleanup(n.kill)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// newCluster starts a cluster whose nodes take one that is silent for dead after a time.
func newCluster(dir string, replicas int, dead time.Duration) (*Nodes, error) {
	n := &Nodes{Nodes: make([]*Server, masters*(1+replicas)), ids: make([]string, masters*(1+replicas))}
	var started errgroup
	for i := range n.Nodes {
		started.do(func() error { return n.start(i, filepath.Join(dir, "node-"+strconv.Itoa(i)), dead) })
	}
	err := started.wait()
	if err == nil {
		err = n.form(replicas)
	}
	if err != nil {
		n.kill()
		return nil, err
	}
	return n, nil
}

// start starts node i, alone for now, and gives a master its slots.
func (n *Nodes) start(i int, dir string, dead time.Duration) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	bus, err := freePort()
	if err != nil {
		return err
	}
	s, err := start(dir, []string{"--cluster-enabled", "yes", "--cluster-node-timeout",
		strconv.FormatInt(dead.Milliseconds(), 10), "--cluster-port", strconv.Itoa(bus), "--repl-diskless-sync-delay", "0", "--cluster-require-full-coverage", "no"})
	if err != nil {
		return err
	}
	n.Nodes[i], s.bus = s, bus
	if n.ids[i], err = s.do("CLUSTER", "MYID"); err != nil {
		return err
	}
	if _, err = s.do("CLUSTER", "SET-CONFIG-EPOCH", i+1); err == nil && i < masters {
		_, err = s.do("CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
	}
	return err
}

// form makes the nodes meet, gives the replicas their masters, and waits until everybody knows.
func (n *Nodes) form(replicas int) error {
	if err := await("the meeting of all nodes", n.meet); err != nil {
		return err
	}
	for i := range masters * replicas {
		s, master := n.Nodes[masters+i], n.ids[i%masters]
		err := await("the meeting of "+s.Addr+" and its master", func() bool {
			_, err := s.do("CLUSTER", "REPLICATE", master) // an error while it does not know the master yet
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if err := n.awaitOK(replicas); err != nil {
		return err
	}
	for _, s := range n.Nodes[masters:] {
		if err := s.awaitLink(); err != nil {
			return err
		}
	}
	return nil
}

// meet makes the first node meet those that it does not know, and reports whether it knows all. On a busy machine a handshake can
// take longer than it may, and is forgotten then.
func (n *Nodes) meet() bool {
	nodes, err := n.Nodes[0].do("CLUSTER", "NODES")
	if err != nil {
		return false
	}
	for _, s := range n.Nodes[1:] {
		if !strings.Contains(nodes, fmt.Sprintf(":%d@", s.Port)) {
			_, _ = n.Nodes[0].do("CLUSTER", "MEET", "127.0.0.1", s.Port, s.bus) // is tried again
		}
	}
	return strings.Count(nodes, " connected") == len(n.Nodes) && !strings.Contains(nodes, "handshake")
}

// awaitOK waits until all nodes, one after the other and at once, say that every slot is served. While the machine is busy one
// can find others silent for a moment, and refuses everything meanwhile.
func (n *Nodes) awaitOK(replicas int) error {
	return await("a cluster that is ok at every node", func() bool {
		for _, s := range n.Nodes {
			info, err := s.do("CLUSTER", "INFO")
			nodes, err2 := s.do("CLUSTER", "NODES")
			if err != nil || err2 != nil || !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(slots)) || strings.Count(nodes, "slave") != masters*replicas ||
				strings.Count(nodes, " connected") != len(n.Nodes) || strings.Contains(nodes, "fail") {
				return false
			}
		}
		return true
	})
}

// errgroup runs functions at the same time and keeps the first error.
type errgroup struct {
	wg  sync.WaitGroup
	mu  sync.Mutex
	err error
}

func (g *errgroup) do(f func() error) {
	g.wg.Go(func() {
		if err := f(); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.err == nil {
				g.err = err
			}
		}
	})
}

func (g *errgroup) wait() error {
	g.wg.Wait()
	return g.err
}

// awaitLink waits until the server, a replica, holds its master's data.
func (s *Server) awaitLink() error {
	return await("the replication of "+s.Addr, s.linked)
}

// linked reports whether the server is a replica that holds its master's data.
func (s *Server) linked() bool {
	info, err := s.do("INFO", "replication")
	return err == nil && strings.Contains(info, "master_link_status:up")
}

func (n *Nodes) kill() {
	for _, s := range n.Nodes {
		if s != nil {
			s.Kill()
		}
	}
}

// Addrs returns the addresses of all nodes.
func (n *Nodes) Addrs() []string {
	var all []string
	for _, s := range n.Nodes {
		all = append(all, s.Addr)
	}
	return all
}

// Client returns a cluster client for the test's own use, closed with the test.
func (n *Nodes) Client(t testing.TB, adjust ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	o := &redis.ClusterOptions{Addrs: n.Addrs(), Protocol: 2, DisableIdentity: true, DialerRetries: 1, PoolSize: 16,
		ClusterStateReloadInterval: time.Second}
	for _, f := range adjust {
		f(o)
	}
	c := redis.NewClusterClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// Owner returns the server that is master of key's slot now, as the first living node sees it, and the slot.
func (n *Nodes) Owner(t testing.TB, key string) (*Server, int) {
	t.Helper()
	for _, s := range n.Nodes {
		if s.Down() {
			continue
		}
		c := redis.NewClient(s.quick())
		defer c.Close()
		slot, err := c.ClusterKeySlot(context.Background(), key).Result()
		if err != nil {
			continue
		}
		shards, err := c.ClusterShards(context.Background()).Result()
		if err != nil {
			continue
		}
		for _, shard := range shards {
			for _, r := range shard.Slots {
				if slot < r.Start || r.End < slot {
					continue
				}
				for _, node := range shard.Nodes {
					if node.Role == "master" && node.Health == "online" {
						return n.byPort(t, int(node.Port)), int(slot)
					}
				}
			}
		}
	}
	t.Fatalf("redistest: nobody owns the slot of %q", key)
	return nil, 0
}

func (n *Nodes) byPort(t testing.TB, port int) *Server {
	for _, s := range n.Nodes {
		if s.Port == port {
			return s
		}
	}
	t.Fatalf("redistest: there is no node of the cluster on port %d", port)
	return nil
}

// A Move is a slot on its way from one master to another. While it is open, keys that are still at the source are served
// there, and others are answered with ASK.
type Move struct {
	n        *Nodes
	slot     int
	from, to *Server
}

// BeginMove opens the move of key's slot to another master and returns it.
func (n *Nodes) BeginMove(t testing.TB, key string) *Move {
	t.Helper()
	from, slot := n.Owner(t, key)
	to := n.Nodes[0]
	if to == from {
		to = n.Nodes[1]
	}
	m := &Move{n: n, slot: slot, from: from, to: to}
	to.Do(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", n.id(from))
	from.Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", n.id(to))
	return m
}

func (n *Nodes) id(s *Server) string {
	for i := range n.Nodes {
		if n.Nodes[i] == s {
			return n.ids[i]
		}
	}
	return ""
}

// Keys moves the keys of the slot that are there now.
func (m *Move) Keys(t testing.TB) {
	t.Helper()
	c := m.from.Client(t)
	for {
		keys, err := c.ClusterGetKeysInSlot(t.Context(), m.slot, 100).Result()
		if err != nil {
			t.Fatalf("redistest: keys of slot %d: %v", m.slot, err)
		}
		if len(keys) == 0 {
			return
		}
		args := []any{"MIGRATE", "127.0.0.1", m.to.Port, "", 0, 5000, "KEYS"}
		for _, k := range keys {
			args = append(args, k)
		}
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("redistest: migrating slot %d: %v", m.slot, err)
		}
	}
}

// Finish closes the move: the other master owns the slot, and the first answers MOVED.
func (m *Move) Finish(t testing.TB) {
	t.Helper()
	m.Keys(t)
	for _, s := range append([]*Server{m.to, m.from}, m.n.Nodes[:masters]...) {
		if !s.Down() {
			s.Do(t, "CLUSTER", "SETSLOT", m.slot, "NODE", m.n.id(m.to))
		}
	}
}

// String tells the move, for failures.
func (m *Move) String() string {
	return fmt.Sprintf("slot %d from %s to %s", m.slot, m.from.Addr, m.to.Addr)
}
