package redistest

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// shared are the processes of the whole test binary.
var shared struct {
	mu      sync.Mutex
	single  *Server
	cluster *Nodes
	dirs    []string
	next    atomic.Int64 // the database that the next test gets
}

// M wraps m so that shared processes end after the last test; give it to goleak.VerifyTestMain or call its Run.
func M(m *testing.M) interface{ Run() int } { return runner{m} }

type runner struct{ m *testing.M }

func (r runner) Run() int {
	defer endShared()
	return r.m.Run()
}

func endShared() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.single != nil {
		shared.single.Kill()
	}
	if shared.cluster != nil {
		shared.cluster.kill()
	}
	shared.single, shared.cluster = nil, nil
	for _, d := range shared.dirs {
		os.RemoveAll(d)
	}
}

// Shared returns a client on an empty database of its own, on the one server that all tests of the binary share. Do not
// stop or kill that server; what a test does to it (CONFIG SET, SCRIPT FLUSH) the others see.
func Shared(t testing.TB, adjust ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return SharedServer(t).Client(t, append([]func(*redis.Options){func(o *redis.Options) {
		o.DB = int(shared.next.Add(1)) % 4096
	}}, adjust...)...)
}

// SharedServer returns the server behind Shared.
func SharedServer(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.single == nil {
		s, err := start(sharedDir(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		shared.single = s
	}
	return shared.single
}

// SharedCluster returns the one cluster that all tests of the binary share: three masters without replicas. Keys are
// shared too: use a prefix of your own.
func SharedCluster(t testing.TB) *Nodes {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil {
		n, err := newCluster(sharedDir(t), 0, 30*time.Second) // nobody is replaced, so nobody need be taken for dead on a busy machine
		if err != nil {
			t.Fatal(err)
		}
		shared.cluster = n
	} else if err := shared.cluster.awaitOK(0); err != nil {
		t.Fatal(err)
	}
	return shared.cluster
}

func sharedDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		t.Fatal(err)
	}
	shared.dirs = append(shared.dirs, dir)
	return dir
}
