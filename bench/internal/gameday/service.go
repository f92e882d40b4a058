package gameday

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The service's size. What arrives above its capacity waits inside of it, in a line without a bound.
const (
	serviceSlots = 12
	serviceTime  = 100 * time.Millisecond
)

// serviceCapacity is what the service can do, in requests a second.
const serviceCapacity = float64(serviceSlots) / (float64(serviceTime) / float64(time.Second))

//go:embed upstream.py
var serviceProgram []byte

// service is the upstream in Python.
type service struct {
	*process
	addr string
}

// startService starts the upstream in a process of its own.
func startService(dir, name string) (*service, error) {
	file := filepath.Join(dir, "upstream.py")
	if err := os.WriteFile(file, serviceProgram, 0o600); err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(addr)
	p, err := launch(dir, name, []string{"python3", file, host, port, strconv.Itoa(serviceSlots), fmt.Sprint(serviceTime.Seconds())}, nil)
	if err != nil {
		return nil, err
	}
	s := &service{process: p, addr: addr}
	if _, err := p.hears("ready"); err != nil {
		p.kill()
		return nil, err
	}
	return s, nil
}

// counts is what the service has seen since it was last reset, by "client part".
type counts struct {
	Arrived map[string]int `json:"arrived"`
	Most    map[string]int `json:"most"`    // at once
	Longest int            `json:"longest"` // how many were inside at most
	Waiting int            `json:"waiting"` // how many are inside now
	Late    float64        `json:"late"`    // how many seconds after its booked end work at most ended
}

// arrived is how much of a part clients have asked for, as far as it came to the service.
func (c counts) arrived(part string, clients ...*customer) (n int) {
	for _, who := range clients {
		n += c.Arrived[who.name+" "+part]
	}
	return n
}

// counts asks what has arrived.
func (s *service) counts() (counts, error) { return s.control("counts", nil) }

// control asks the service for something that no client can.
func (s *service) control(what string, body any) (counts, error) {
	var c counts
	text, err := json.Marshal(body)
	if err != nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/-/"+what, bytes.NewReader(text))
	if err != nil {
		return c, err
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return c, fmt.Errorf("gameday: the service does not answer: %w", err)
	}
	defer res.Body.Close()
	return c, json.NewDecoder(res.Body).Decode(&c)
}

// set changes how the service behaves: how many times slower than usual it is, and which parts of it are broken.
func (s *service) set(factor float64, broken ...string) error {
	if broken == nil {
		broken = []string{}
	}
	_, err := s.control("set", map[string]any{"factor": factor, "broken": broken})
	return err
}

// live is the upstream in Go: event streams, and WebSockets that say back what is said to them.
type live struct {
	server   *http.Server
	listener net.Listener
}

func startLive() (*live, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", events)
	mux.HandleFunc("GET /ws", echo)
	mux.HandleFunc("GET /ping", func(http.ResponseWriter, *http.Request) {})
	s := &live{server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, listener: l}
	go func() { _ = s.server.Serve(l) }() // ends with Close, which is its only error
	return s, nil
}

func (s *live) addr() string { return s.listener.Addr().String() }

// events tells the time twice a second.
func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := fmt.Fprintf(w, "data: %d\n\n", time.Now().UnixMilli()); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
