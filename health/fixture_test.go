package health

import (
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tree is a file system that behaves like /proc and the cgroup file systems: an open file shows its present content, and
// fails with ENODEV once its cgroup is gone.
type tree struct {
	mu    sync.Mutex
	nodes map[string]*node
	opens int
}

type node struct {
	content func() string
	openErr error
	readErr error
	gone    bool
}

// plant makes a tree of path and content; paths are absolute.
func plant(files map[string]string) *tree {
	t := &tree{nodes: make(map[string]*node)}
	for name, text := range files {
		t.write(name, text)
	}
	return t
}

func (t *tree) node(name string) *node {
	name = strings.TrimPrefix(name, "/")
	n := t.nodes[name]
	if n == nil {
		n = &node{}
		t.nodes[name] = n
	}
	return n
}

// write sets the content of a file, which appears if it is new.
func (t *tree) write(name, text string) { t.serve(name, func() string { return text }) }

// serve lets content answer each read.
func (t *tree) serve(name string, content func() string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*t.node(name) = node{content: content}
}

// refuse lets opening or reading a file fail; nil errors let it work again.
func (t *tree) refuse(name string, openErr, readErr error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.node(name)
	n.openErr, n.readErr = openErr, readErr
}

// remove takes everything at or below the path away and gives it back to the caller.
func (t *tree) remove(prefix string) map[string]*node {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := make(map[string]*node)
	for name, n := range t.nodes {
		if strings.HasPrefix("/"+name, prefix) {
			kept := *n
			taken[name] = &kept
			n.gone = true
			delete(t.nodes, name)
		}
	}
	return taken
}

// restore puts back what remove took.
func (t *tree) restore(taken map[string]*node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, n := range taken {
		t.nodes[name] = n
	}
}

func (t *tree) Open(name string) (fs.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	n, ok := t.nodes[name]
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	case n.openErr != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: n.openErr}
	}
	t.opens++
	return &handle{tree: t, name: name, node: n}, nil
}

// openFiles is the number of descriptors that were not closed.
func (t *tree) openFiles() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.opens
}

type handle struct {
	tree   *tree
	name   string
	node   *node
	offset int64
	closed bool
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	h.tree.mu.Lock()
	defer h.tree.mu.Unlock()
	switch {
	case h.closed:
		return 0, fs.ErrClosed
	case h.node.gone:
		return 0, &fs.PathError{Op: "read", Path: h.name, Err: syscall.ENODEV}
	case h.node.readErr != nil:
		return 0, &fs.PathError{Op: "read", Path: h.name, Err: h.node.readErr}
	}
	return strings.NewReader(h.node.content()).ReadAt(p, off)
}

func (h *handle) Read(p []byte) (int, error) {
	n, err := h.ReadAt(p, h.offset)
	h.offset += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (h *handle) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

func (h *handle) Close() error {
	h.tree.mu.Lock()
	defer h.tree.mu.Unlock()
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	h.tree.opens--
	return nil
}

const (
	mountsV2 = "24 1 0:22 / /proc rw - proc proc rw\n" +
		"30 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountsV1 = "30 24 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
		"31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"32 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)

// service is a simulated process in a cgroup v2 with a quota. CPU time grows with the load over (virtual) time, and what
// does not fit under the quota is throttled.
type service struct {
	*tree
	mu      sync.Mutex
	clock   func() time.Time
	at      time.Time
	load    float64 // cores this process uses
	sidecar float64 // cores that others in the cgroup use
	cpus    int
	own     time.Duration
	all     time.Duration
	periods float64
	hit     float64 // throttled periods
	quota   float64 // cores; 0: none
}

// newService returns a service on a host of cpus CPUs with a quota in cores (0: none).
func newService(cpus int, quota float64, clock func() time.Time) *service {
	s := &service{tree: plant(nil), clock: clock, at: clock(), cpus: cpus, quota: quota}
	s.write("/proc/self/cgroup", "0::/pod/app\n")
	s.write("/proc/self/mountinfo", mountsV2)
	s.write("/sys/fs/cgroup/pod/cpu.max", "max 100000\n")
	s.write("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 0\nnr_periods 0\nnr_throttled 0\n")
	s.serve("/sys/fs/cgroup/pod/app/cpu.max", func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.quota == 0 {
			return "max 100000\n"
		}
		return strconv.Itoa(int(s.quota*100000)) + " 100000\n"
	})
	s.serve("/sys/fs/cgroup/pod/app/cpu.stat", func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.run()
		return "usage_usec " + strconv.FormatInt(s.all.Microseconds(), 10) + "\nuser_usec 1\nsystem_usec 1\nnr_periods " +
			strconv.Itoa(int(s.periods)) + "\nnr_throttled " + strconv.Itoa(int(s.hit)) + "\nthrottled_usec 5\n"
	})
	return s
}

// run brings the counters up to now; s.mu is held.
func (s *service) run() {
	now := s.clock()
	dt := now.Sub(s.at)
	s.at = now
	own, all := s.load, s.load+s.sidecar
	if s.quota > 0 {
		s.periods += dt.Seconds() * 10
		if all >= s.quota {
			own, all = own*s.quota/all, s.quota
			s.hit += dt.Seconds() * 10
		}
	}
	s.own += time.Duration(own * float64(dt))
	s.all += time.Duration(all * float64(dt))
}

// use sets the load from now on.
func (s *service) use(own, sidecar float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run()
	s.load, s.sidecar = own, sidecar
}

// limit changes the quota in place.
func (s *service) limit(quota float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run()
	s.quota = quota
}

func (s *service) processTime() (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run()
	return s.own, nil
}

func (s *service) system() system {
	return system{clock: s.clock, files: s.tree, processTime: s.processTime, cpus: func() int { return s.cpus }}
}

// must is the value, or the end of the test.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// near reports whether a and b differ by no more than a rounding.
func near(a, b, tolerance float64) bool { return a-b <= tolerance && b-a <= tolerance }
