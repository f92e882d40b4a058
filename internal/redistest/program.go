package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Relaunch is Restart for programs that are no tests: the process is killed and started anew on the same port, with its
// state lost.
func (s *Server) Relaunch(args ...string) error {
	s.Kill()
	return s.launch(args)
}

// StartSentinels is Sentinel for programs that are no tests: a master, its replica and three sentinels, for whom a master that
// is silent for down is dead. All keep what they write in folders under dir. Whoever calls it kills them.
func StartSentinels(dir string, down time.Duration) (_ *Sentinels, err error) {
	s := &Sentinels{Name: "main"}
	defer func() {
		if err != nil {
			s.Kill()
		}
	}()
	run := func(name string, args ...string) (*Server, error) {
		own := filepath.Join(dir, name)
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, err
		}
		return start(own, args)
	}
	if s.Master, err = run("master", "--repl-diskless-sync-delay", "0"); err != nil {
		return nil, err
	}
	s.Replica, err = run("replica", "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Master.Port))
	if err != nil {
		return nil, err
	}
	if err := s.Replica.awaitLink(); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("bind 127.0.0.1\nsentinel monitor %[1]s 127.0.0.1 %[2]d 2\n"+
		"sentinel down-after-milliseconds %[1]s %[3]d\nsentinel failover-timeout %[1]s 3000\n", s.Name, s.Master.Port, down.Milliseconds())
	for i := range 3 {
		name := "sentinel-" + strconv.Itoa(i)
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
		file := filepath.Join(dir, name, "sentinel.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		w, err := run(name, file, "--sentinel")
		if err != nil {
			return nil, err
		}
		s.Watchers = append(s.Watchers, w)
	}
	for _, w := range s.Watchers {
		err := await("a sentinel that knows everybody", func() bool {
			info, err := w.do("INFO", "sentinel")
			return err == nil && strings.Contains(info, "status=ok") && strings.Contains(info, "slaves=1,sentinels=3")
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Settle makes Master and Replica name whom the sentinels call so now, and waits until the one follows the other. It asks again and
// again, for a sentinel that is busy may not answer once.
func (s *Sentinels) Settle() error {
	return await("one of "+s.Master.Addr+" and "+s.Replica.Addr+" following the other", func() bool {
		if s.IsMaster(s.Replica) {
			s.Master, s.Replica = s.Replica, s.Master
		}
		return s.Replica.linked()
	})
}

// IsMaster reports whether all sentinels name want as the master and it takes writes.
func (s *Sentinels) IsMaster(want *Server) bool {
	for _, w := range s.Watchers {
		named, err := w.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name)
		if err != nil || !strings.Contains(named, strconv.Itoa(want.Port)) {
			return false
		}
	}
	role, err := want.do("ROLE")
	return err == nil && strings.Contains(role, "master")
}

// Kill ends all processes, the sentinels first, so that none of them takes the end for a failure.
func (s *Sentinels) Kill() {
	for _, w := range s.Watchers {
		w.Kill()
	}
	for _, r := range []*Server{s.Replica, s.Master} {
		if r != nil {
			r.Kill()
		}
	}
}
