package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var errNotInstalled = errors.New("the program redis-server is not installed; get it with `apt-get install redis-server` or `brew install redis`")

// server is a redis-server process of this program's own, on a free port of loopback. It writes down what it does before it
// answers, so that it remembers when it comes back.
type server struct {
	addr, dir string
	process   *exec.Cmd
	exited    chan struct{}
}

func startRedis(ctx context.Context) (*server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, errNotInstalled
	}
	redis.SetLogger(quiet{}) // it would tell of each refused connection
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	dir, err := os.MkdirTemp("", "spillway-redis")
	if err != nil {
		return nil, err
	}
	s := &server{addr: addr, dir: dir}
	if err := s.launch(ctx); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// launch starts the process and returns when it answers.
func (s *server) launch(ctx context.Context) error {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	s.process = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "always") // with the usual everysec a crash may forget the last two seconds
	var log strings.Builder
	s.process.Stdout = &log
	if err := s.process.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(c *exec.Cmd) {
		_ = c.Wait() // that it has ended is all
		close(exited)
	}(s.process)
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, DialerRetries: 1, PoolSize: 1})
	defer client.Close()
	for {
		if err := client.Ping(ctx).Err(); err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-exited:
			return fmt.Errorf("redis-server has ended before it answered:\n%s", log.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kill ends the process at once, as a crash would.
func (s *server) kill() {
	if s.process == nil || s.process.Process == nil {
		return
	}
	_ = s.process.Process.Kill() // an error says that it has ended already
	<-s.exited
}

// remove ends the process and drops what it kept.
func (s *server) remove() {
	s.kill()
	os.RemoveAll(s.dir)
}
