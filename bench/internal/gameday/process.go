package gameday

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long a start, or a state that must come by itself, is waited for. It is long because the machine may be
// busy; nothing waits for it when all is well.
const patience = 60 * time.Second

// process is a program that the day has started. What it says on its standard error is kept in a file in the day's folder.
type process struct {
	name   string
	cmd    *exec.Cmd
	log    string
	lines  chan string // what it says on its standard output; closed at the end
	exited chan struct{}
	err    error // how it ended; read it after exited
}

// launch starts a program.
func launch(dir, name string, argv, env []string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), lines: make(chan string, 64), exited: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir, p.cmd.Stderr, p.cmd.Env = dir, log, append(os.Environ(), env...)
	p.cmd.SysProcAttr = ownGroup()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("gameday: %s does not start: %w", name, err)
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case p.lines <- s.Text():
			default: // nobody listens any more
			}
		}
		_, _ = io.Copy(io.Discard, out)
		close(p.lines)
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// hears waits for a line that holds want, and returns it.
func (p *process) hears(want string) (string, error) {
	limit := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				<-p.exited
				return "", fmt.Errorf("gameday: %s has ended (%v): %s", p.name, p.err, p.tail())
			}
			if strings.Contains(line, want) {
				return line, nil
			}
		case <-limit:
			return "", fmt.Errorf("gameday: %s did not say %q within %v: %s", p.name, want, patience, p.tail())
		}
	}
}

// tail is the end of what the program complained about.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}

// running reports whether it has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends it as kill -9 does.
func (p *process) kill() {
	if p != nil && p.running() {
		_ = p.cmd.Process.Kill() // an error says that it has ended already
		<-p.exited
	}
}

// stop asks it to end, and returns how it did. What has not ended within 15 s is killed.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	if p.running() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-p.exited:
	case <-time.After(15 * time.Second):
		p.kill()
		return fmt.Errorf("gameday: %s did not end within 15s and was killed", p.name)
	}
	return p.err
}

// freeAddr returns an address with a port that nobody listens on, below the range from which outgoing connections get theirs: none of these
// takes it while its program is down.
func freeAddr() (string, error) {
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(22_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return "127.0.0.1:" + port, l.Close()
		}
	}
	return "", errors.New("gameday: there is no free port on 127.0.0.1")
}
