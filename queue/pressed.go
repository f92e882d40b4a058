package queue

import "time"

// A surge that has lasted for surgeLong is no burst, and a line does not help against it: who waits for long gets the place that
// somebody else would have had sooner. So those of its clients who were refused lately had better wait for a short time only. Retries
// after a storm keep a service just full for many seconds: with a long line everybody waits in it until the last retry has gone, with a
// short one as much is served, and at once.
//
// It is not for clients whom the refusals have left alone: a surge that one greedy client makes is not theirs. Nor for the lower
// priorities, for which nobody waits at a screen, nor for a flood, when newest first alone lets those who are served be served at once
// and a short wait would only let more of the others wait in vain.
const (
	surgeLong   = 2 * time.Second
	lately      = 400 * time.Millisecond
	floodFactor = 7   // a flood is when so many times as many are refused as have their turn
	countMemory = 256 // of turns and refusals, over which they are compared
)

// Pressed reports whether w should wait for a short time only: refusals of its priority, 0 or above, have lasted for 2 s, and its own
// client is one of those who were refused in the last 400 ms. While more than seven of eight are refused nobody is pressed.
func (f *Fair) Pressed(now time.Duration, w *Waiter) bool {
	t := &f.tiers[tierOf(w.Priority)]
	return w.Priority >= 0 && t.surge.long(now) && !t.surge.flood() && t.refusals != nil && t.refusals.has(now, w.Client)
}

// long reports whether the surge has lasted for long at now.
func (s *surge) long(now time.Duration) bool { return s.lasts(now) && now-s.began >= surgeLong }

// count adds one to n, which is turns or away, and lets what was before fade.
func (s *surge) count(n *float64) {
	const kept = 1 - 1./countMemory
	s.turns, s.away = kept*s.turns, kept*s.away
	*n++
}

func (s *surge) flood() bool { return s.away > floodFactor*s.turns }

// refusals remembers which clients were refused lately. Each name has one place, by its hash, so the memory is the same whoever comes.
// Where two meet in a place the one refused last is remembered, and the other waits as everybody does. The hash has no secret, so that
// a simulation can be repeated: who makes up names that meet only spares somebody a short wait.
type refusals [1024]struct {
	client string
	at     time.Duration
}

func (r *refusals) add(now time.Duration, client string) {
	p := &r[place(client)]
	p.client, p.at = client, now
}

func (r *refusals) has(now time.Duration, client string) bool {
	p := &r[place(client)]
	return p.client == client && p.at > 0 && now-p.at < lately
}

// place is the FNV-1a hash of the last bytes of a name, in which names differ most.
func place(client string) int {
	h := uint32(2166136261)
	for i := max(0, len(client)-8); i < len(client); i++ {
		h = (h ^ uint32(client[i])) * 16777619
	}
	return int(h % uint32(len(refusals{})))
}
