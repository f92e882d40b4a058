package redistest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/internal/wait"
)

// silent drops what go-redis prints about every refused connection, which is what the tests are about.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// A Server is one redis-server process (or a sentinel, which is the same program).
type Server struct {
	// Addr is host:port, and stays the same over Kill and Restart.
	Addr string
	Port int

	dir      string
	args     []string
	password string
	bus      int // a cluster node's second port

	mu      sync.Mutex // guards what follows
	process *exec.Cmd  // nil while there is none
	exited  chan struct{}
}

// Single starts a server of its own for t, without persistence. args are added to the command line, such as
// "--maxmemory", "3mb".
func Single(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := start(t.TempDir(), args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Start is Single for programs that are no tests, such as comparisons: dir is the server's own, and whoever calls it kills
// the server.
func Start(dir string, args ...string) (*Server, error) { return start(dir, args) }

// start starts a server on a free port. Another process can be quicker to take the port, so it tries several.
func start(dir string, args []string) (*Server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("redistest: this test needs the program redis-server, which is not installed; get it with "+
			"`apt-get install redis-server` or `brew install redis`: %w", err)
	}
	var err error
	for range 10 {
		var port int
		if port, err = freePort(); err != nil {
			return nil, err
		}
		s := &Server{Addr: "127.0.0.1:" + strconv.Itoa(port), Port: port, dir: dir, args: args}
		for i, a := range args[:max(len(args)-1, 0)] {
			if a == "--requirepass" {
				s.password = args[i+1]
			}
		}
		if err = s.launch(nil); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// freePort returns a port that nobody listens on. It is below the range from which outgoing connections get theirs, so that
// none of these takes it while a server is down.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 10_000 + rand.IntN(22_000)
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("redistest: there is no free port on 127.0.0.1: %w", err)
}

// launch starts the process and waits until it answers.
func (s *Server) launch(more []string) error {
	var args []string
	if len(s.args) > 0 && strings.HasSuffix(s.args[0], ".conf") {
		args = append(args, s.args[0])
		args = append(args, "--port", strconv.Itoa(s.Port))
		args = append(args, s.args[1:]...)
	} else {
		args = append(args, "--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--databases", "4096", "--enable-debug-command", "local")
		args = append(args, s.args...)
	}
	args = append(args, "--dir", s.dir, "--daemonize", "no")
	args = append(args, more...)
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command("redis-server", args...)
	c.Dir, c.Stdout, c.Stderr = s.dir, log, log
	dieWithParent(c)
	if err := c.Start(); err != nil {
		return fmt.Errorf("redistest: redis-server does not start: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = c.Wait() // how it ended does not matter, that it ended does
		close(exited)
	}()
	s.mu.Lock()
	s.process, s.exited = c, exited
	s.mu.Unlock()
	if err := s.ready(c.Process.Pid, exited); err != nil {
		s.Kill()
		return fmt.Errorf("%w\n%s", err, s.tail())
	}
	return nil
}

// ready waits until the process answers, and makes sure that it is ours: on a port that somebody else took first, somebody
// else answers.
func (s *Server) ready(pid int, exited <-chan struct{}) error {
	want := "process_id:" + strconv.Itoa(pid)
	for begin := time.Now(); time.Since(begin) < wait.Patience; {
		if c, err := net.Dial("tcp", s.Addr); err == nil { // a client's pool would wait after refusals
			c.Close()
			if info, err := s.do("INFO", "server"); err == nil && strings.Contains(info, want) {
				return nil
			}
		}
		select {
		case <-exited:
			return fmt.Errorf("redistest: redis-server on %s has ended before it answered", s.Addr)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return fmt.Errorf("redistest: redis-server on %s does not answer within %v", s.Addr, wait.Patience)
}

// quick are the options of clients for the tests' own use: no retries and no pool in the background.
func (s *Server) quick() *redis.Options {
	return &redis.Options{
		Addr: s.Addr, Password: s.password, Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: 5 * time.Second, PoolSize: 4,
	}
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "redis-"+strconv.Itoa(s.Port)+".log") }

// tail returns the end of the server's log, for errors.
func (s *Server) tail() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
}

// Client returns a client for the test's own use, which retries nothing and is closed with the test. Each of adjust may
// change its options.
func (s *Server) Client(t testing.TB, adjust ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := s.quick()
	for _, f := range adjust {
		f(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// User makes an ACL user with these rights alone, such as "~spillway:*", "+evalsha", and returns its options. It is gone
// with the test.
func (s *Server) User(t testing.TB, name string, rights ...string) *redis.Options {
	t.Helper()
	const password = "only-on-loopback"
	args := []any{"ACL", "SETUSER", name, "reset", "on", ">" + password}
	for _, r := range rights {
		args = append(args, r)
	}
	c := redis.NewClient(s.quick())
	defer c.Close()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("redistest: user %s: %v", name, err)
	}
	t.Cleanup(func() {
		c := redis.NewClient(s.quick())
		defer c.Close()
		c.Do(context.Background(), "ACL", "DELUSER", name)
	})
	o := s.quick()
	o.Username, o.Password = name, password
	return o
}

// Stop freezes the process: connections stay, the kernel takes new ones too, and nothing is answered.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont lets a stopped process go on.
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Process.Signal(sig) // an error says that it has ended already
	}
}

// Kill ends the process as kill -9 does, and returns when it is gone; its port then refuses connections. Killing a server
// that is down does nothing.
func (s *Server) Kill() {
	s.mu.Lock()
	c, exited := s.process, s.exited
	s.process = nil
	s.mu.Unlock()
	if c == nil {
		return
	}
	_ = c.Process.Kill()
	<-exited
}

// Restart kills the process and starts it anew on the same port, with its state lost (unless the test has made it save).
// args are added for this life only.
func (s *Server) Restart(t testing.TB, args ...string) {
	t.Helper()
	s.Kill()
	if err := s.launch(args); err != nil {
		t.Fatal(err)
	}
}

// Down reports whether there is no process now.
func (s *Server) Down() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process == nil
}

// Do sends one command on a connection of its own and returns the reply as text. It is for commands that set the stage.
func (s *Server) Do(t testing.TB, args ...any) string {
	t.Helper()
	reply, err := s.do(args...)
	if err != nil {
		t.Fatalf("redistest: %v: %v", args, err)
	}
	return reply
}

func (s *Server) do(args ...any) (string, error) {
	c := redis.NewClient(s.quick())
	defer c.Close()
	reply, err := c.Do(context.Background(), args...).Result()
	return fmt.Sprint(reply), err
}

// await waits until done is true. It is for states that come by themselves.
func await(what string, done func() bool) error {
	for begin := time.Now(); time.Since(begin) < wait.Patience; time.Sleep(10 * time.Millisecond) {
		if done() {
			return nil
		}
	}
	return fmt.Errorf("redistest: %s did not come within %v", what, wait.Patience)
}
