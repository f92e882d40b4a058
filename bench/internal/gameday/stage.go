package gameday

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spillway-go/spillway/internal/browser"
	"github.com/spillway-go/spillway/internal/redistest"
)

// masterDown is how long a silent Redis is borne before its replica takes over.
const masterDown = 6 * time.Second

// stage is the small production: everything that runs.
type stage struct {
	dir      string
	redis    *redistest.Sentinels
	service  *service
	live     *live
	gateways []*gateway
	balancer *balancer
	crowd    *crowd
	token    string
	undo     []func()
}

// errUsage is an error of whoever called, such as a program that has to be installed; nothing has been started.
type errUsage struct{ error }

// missing says what of the day's programs is not installed, and what else this machine has not.
func missing() error {
	for _, p := range []struct{ program, with string }{
		{"redis-server", "apt-get install -y redis-server"},
		{"python3", "apt-get install -y python3"},
		{"go", "https://go.dev/dl"},
	} {
		if _, err := exec.LookPath(p.program); err != nil {
			return errUsage{errors.New("gameday: " + p.program + " is not installed; install it with: " + p.with)}
		}
	}
	if _, err := browser.Find(); err != nil {
		return errUsage{errors.New("gameday: Chromium is not installed; install it with: apt-get install -y chromium")}
	}
	probe, err := net.Listen("tcp", net.JoinHostPort(loopback(20, 1, 1).String(), "0"))
	if err != nil {
		return errUsage{fmt.Errorf("gameday: customers have addresses of their own in 127.0.0.0/8, which are this machine's on Linux only: %w", err)}
	}
	return probe.Close()
}

// redisURL is what the gateways' file says.
func (s *stage) redisURL() string {
	sentinels := s.redis.Addrs()
	return "redis+sentinel://" + sentinels[0] + "/0?master_name=" + s.redis.Name + "&addr=" + strings.Join(sentinels[1:], "&addr=")
}

// end ends everything, the last first. It may be called at any time.
func (s *stage) end() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.undo = nil
}

// setUp starts everything. What was started before an error is for end.
func (s *stage) setUp(ctx context.Context, race bool, say func(string, ...any)) (err error) {
	say("building the gateway")
	bin, err := buildGateway(ctx, s.dir, race)
	if err != nil {
		return err
	}
	say("starting Redis with a replica and three sentinels, a service in Python, one in Go, two gateways")
	if s.redis, err = redistest.StartSentinels(s.dir, masterDown); err != nil {
		return err
	}
	s.undo = append(s.undo, s.redis.Kill)
	if s.service, err = startService(s.dir, "service"); err != nil {
		return err
	}
	s.undo = append(s.undo, s.service.kill)
	if s.live, err = startLive(); err != nil {
		return err
	}
	s.undo = append(s.undo, func() { s.live.server.Close() })
	s.token = rand.Text() + rand.Text()
	if err := write(s.dir, "admin.token", s.token+"\n"); err != nil {
		return err
	}
	if err := s.configure(usual); err != nil {
		return err
	}
	s.crowd = newCrowd()
	if s.crowd.keys, err = makeKeys(s.dir, s.crowd.accounts()); err != nil {
		return err
	}
	var addrs []string
	for _, name := range []string{"gateway-a", "gateway-b"} {
		g := &gateway{bin: bin, dir: s.dir, name: name, token: s.token, upstream: s.service.addr}
		if g.listen, err = freeAddr(); err != nil {
			return err
		}
		if g.admin, err = freeAddr(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := g.start(ctx); err != nil {
			return err
		}
		s.undo = append(s.undo, func() { _ = g.stop() }) // how it ends is the business of an act
		s.gateways, addrs = append(s.gateways, g), append(addrs, g.listen)
	}
	err = await(ctx, "Redis decides for both gateways", func() bool {
		return s.both(func(g *gateway) error {
			v, err := g.look()
			if err == nil && v.Shed.Store.State != "up" {
				err = errors.New(v.Shed.Store.Error)
			}
			return err
		}) == nil
	})
	if err != nil {
		return err
	}
	// While nothing is in force clients look once a minute only. A notice that is up all day makes the pace that of poll_after.
	if err := s.gateways[1].operate(http.MethodPut, "/items/notice", noticeItem); err != nil {
		return err
	}
	if err := await(ctx, "the notice in the other gateway", func() bool { return s.gateways[0].tells("notice") }); err != nil {
		return err
	}
	s.balancer = newBalancer(addrs...)
	s.undo = append(s.undo, s.crowd.close)
	return s.crowd.open(s.balancer)
}

// noticeItem is what customers are told all day.
const noticeItem = `{"severity":"minor","message":{"en":"Sale today."},"ttl":"2h","reason":"game day"}`

// configure writes the gateways' file.
func (s *stage) configure(r rules) error {
	return write(s.dir, "gateway.yaml", settings(r, s.redisURL(), s.live.addr()))
}

// both does something with every gateway that runs, and returns the first error.
func (s *stage) both(do func(*gateway) error) error {
	for _, g := range s.gateways {
		if err := do(g); err != nil {
			return err
		}
	}
	return nil
}

// newDir makes the day's folder.
func newDir() (string, error) { return os.MkdirTemp("", "spillway-gameday-") }

// loopback is an address of this machine.
func loopback(a, b, c byte) net.IP { return net.IPv4(127, a, b, c) }
