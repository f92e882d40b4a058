package shed

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/spillway-go/spillway/queue"
)

// namedClients is how many clients LineStatus names.
const namedClients = 5

// LineStatus tells who stands in the line.
type LineStatus struct {
	// Waiting counts them by priority; all priorities are there.
	Waiting map[string]int `json:"waiting"`
	// NewestFirst lists the priorities of which refusals last, so that their newest is served first.
	NewestFirst []string `json:"newest_first,omitempty"`
	// Clients lists those with the most waiters, most first, at most 5.
	Clients []ClientStatus `json:"clients,omitempty"`
}

// ClientStatus counts the waiters that one client has in one priority.
type ClientStatus struct {
	// Client stands for the client's name: a hash with a salt of its own for each Shedder, so that two views of one process
	// can be compared and nobody's address or key can be read.
	Client   string `json:"client"`
	Priority string `json:"priority"`
	Waiting  int    `json:"waiting"`
}

// readLine reads who stands in the line; the caller holds the lock.
func (g *gate) readLine(now time.Duration, st *LineStatus) []queue.Backlog {
	line, ok := g.line.(*queue.Fair)
	if !ok {
		return nil
	}
	for p := Sheddable; p <= CriticalPlus; p++ {
		st.Waiting[p.String()] = line.Waiting(int(p))
		if line.NewestFirst(now, int(p)) {
			st.NewestFirst = append(st.NewestFirst, p.String())
		}
	}
	return line.Greediest(namedClients)
}

// pseudonyms is the salt under which clients have other names in views.
type pseudonyms [16]byte

func newPseudonyms() (v pseudonyms) {
	rand.Read(v[:]) // never fails
	return v
}

func (v pseudonyms) clients(backlogs []queue.Backlog) []ClientStatus {
	var all []ClientStatus
	for _, b := range backlogs {
		sum := sha256.Sum256(append(v[:], b.Client...))
		all = append(all, ClientStatus{
			Client: hex.EncodeToString(sum[:8]), Priority: Priority(b.Priority).String(), Waiting: b.Waiting,
		})
	}
	return all
}
