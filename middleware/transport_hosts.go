package middleware

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// others is the key under which the services share what is known about them that find no place in a full table.
const others = "(others)"

// hosts keeps what is known about each service. The table is bounded: what is idle makes room, and where nothing is, new
// services share an entry.
type hosts struct {
	parallel int

	mu  sync.Mutex
	all map[string]*host
}

// host is one service.
type host struct {
	key    string
	places chan struct{} // one for each call that runs; nil if there may be any number
	budget retryBudget

	users int // calls that are at it; under hosts.mu

	mu       sync.Mutex
	throttle throttle
	until    time.Duration // paused until then
	running  int
}

func newHosts(parallel int) *hosts { return &hosts{parallel: parallel, all: make(map[string]*host)} }

// get returns the service of a key and keeps it from being forgotten until put.
func (t *hosts) get(key string, now time.Duration) *host {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.all[key]
	if h == nil && len(t.all) >= DefaultTransportHosts && !t.forget(now) {
		key = others
		h = t.all[key]
	}
	if h == nil {
		h = &host{key: key}
		if t.parallel > 0 {
			h.places = make(chan struct{}, t.parallel)
		}
		t.all[key] = h
	}
	h.users++
	return h
}

// forget drops the services about which there is nothing to remember, and reports whether there were any.
func (t *hosts) forget(now time.Duration) bool {
	before := len(t.all)
	for key, h := range t.all {
		if h.users == 0 && h.idle(now) {
			delete(t.all, key)
		}
	}
	return len(t.all) < before
}

func (t *hosts) put(h *host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.users--
}

func (t *hosts) status(now time.Duration) []ServiceStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]ServiceStatus, 0, len(t.all))
	for _, h := range t.all {
		h.mu.Lock()
		list = append(list, ServiceStatus{
			Key: h.key, Running: h.running, Throttle: h.throttle.share(now), PausedFor: shed.Duration(max(h.until-now, 0)),
		})
		h.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b ServiceStatus) int { return strings.Compare(a.Key, b.Key) })
	return list
}

func (h *host) idle(now time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running == 0 && h.until <= now && h.throttle.idle(now)
}

// enter takes a place if one is free.
func (h *host) enter() bool {
	if h.places != nil {
		select {
		case h.places <- struct{}{}:
		default:
			return false
		}
	}
	h.entered()
	return true
}

// entered counts a call that has its place.
func (h *host) entered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running++
}

// leave gives a place back. Who has waited longest gets it.
func (h *host) leave() {
	h.mu.Lock()
	h.running--
	h.mu.Unlock()
	if h.places != nil {
		<-h.places
	}
}

// pause keeps calls away for d from now. A shorter pause does not end a longer one.
func (h *host) pause(now, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = max(h.until, now+d)
}

func (h *host) pausedFor(now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until - now
}

// count notes how a call ended.
func (h *host) count(now time.Duration, accepted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.throttle.count(now, accepted)
}

// holdsBack decides whether the throttle holds a call back, and counts it then.
func (h *host) holdsBack(now time.Duration, random func(n int64) int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	const fine = 1 << 30
	share := h.throttle.share(now)
	if share <= 0 || random(fine) >= int64(share*fine) {
		return false
	}
	h.throttle.count(now, false)
	return true
}
