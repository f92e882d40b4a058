package pumpkin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// How many records the memory keeps. Wrong tokens have a place of their own: who guesses cannot push out what was done.
const (
	keptRecords  = 256
	keptFailures = 32
)

// Record is one entry of the audit trail: somebody did, or tried to do, something; or time did.
type Record struct {
	At     time.Time `json:"ts"`
	Actor  string    `json:"actor"`            // the token's name; "clock" for what time did, "file" for the break-glass file
	Remote string    `json:"remote,omitempty"` // the address the request came from
	// Action is put, delete, mode_on, mode_off, force_off or end_force_off; auto_raise, auto_step, auto_prolong or auto_lower; start, ends_soon or expire; file_on, file_off or
	// file_bad; unauthorized, cross_origin or wrong_host.
	Action string `json:"action"`
	ID     string `json:"id,omitempty"`
	Before *Item  `json:"before,omitempty"`
	After  *Item  `json:"after,omitempty"`
	Reason string `json:"reason,omitempty"`
	Ticket string `json:"ticket,omitempty"`
	Rev    uint64 `json:"rev"`
	// Applied is "yes", "local" when the shared store could not be asked, or "no" for what was refused.
	Applied string `json:"applied"`
	// Refused is the word for why not, Detail the same for people.
	Refused Reason `json:"refused,omitempty"`
	Detail  string `json:"detail,omitempty"`

	n uint64 // the number of the record, for an order among equal times
}

// refused is the record of an attempt.
func (r Record) refused(err error) Record {
	r.Applied, r.Detail = "no", err.Error()
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		r.Refused, r.Detail = refusal.Reason, refusal.Detail
	}
	return r
}

// trail is the audit trail: rings in memory, and a file that is only ever appended to.
type trail struct {
	log    *slog.Logger
	file   string        // empty: none
	failed atomic.Uint64 // records that the file did not take

	mu       sync.Mutex
	added    uint64
	records  []Record
	failures []Record

	queue auditQueue
}

// open makes sure that the file can be written, so that a misspelt path is found at the start.
func (t *trail) open() error {
	if t.file == "" {
		return nil
	}
	f, err := t.append()
	if err != nil {
		return fmt.Errorf("pumpkin: the audit file: %w; name a file in a folder that this program may write to", err)
	}
	return f.Close()
}

// append opens the file for one record, so that it may be moved away at any time.
func (t *trail) append() (*os.File, error) {
	return os.OpenFile(t.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// add keeps r, which gets its time here.
func (t *trail) add(r Record) {
	r.At = time.Now().UTC().Round(0)
	t.mu.Lock()
	t.added++
	r.n = t.added
	if r.isFailure() {
		t.failures = keep(t.failures, r, keptFailures)
	} else {
		t.records = keep(t.records, r, keptRecords)
	}
	t.mu.Unlock()
	if t.file == "" {
		return
	}
	line, err := json.Marshal(r)
	if err == nil {
		err = t.queue.put(append(line, '\n'), t.write)
	}
	if err != nil {
		t.failed.Add(1)
		t.log.Error("pumpkin: the audit file does not take a record; it is kept in memory", slog.String("file", t.file),
			slog.String("action", r.Action), slog.String("id", r.ID), slog.String("actor", r.Actor), slog.Any("error", err))
	}
}

func (t *trail) write(line []byte) error {
	f, err := t.append()
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// isFailure reports whether whoever is behind r had no token, or none that may write.
func (r Record) isFailure() bool {
	return r.Action == "unauthorized" || r.Action == "cross_origin" || r.Action == "wrong_host"
}

// keep appends and drops the oldest beyond limit.
func keep(records []Record, r Record, limit int) []Record {
	if len(records) >= limit {
		records = slices.Delete(records, 0, len(records)-limit+1)
	}
	return append(records, r)
}

// last returns up to n records, the newest first.
func (t *trail) last(n int) []Record {
	t.mu.Lock()
	all := slices.Concat(t.records, t.failures)
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(b.n, a.n) })
	return all[:min(n, len(all))]
}

// Audit returns up to n records of the audit trail, the newest first. The memory holds the last 256, and the last 32
// attempts without a right token; the file, if there is one, holds them all.
func (p *Pumpkin) Audit(n int) []Record { return p.audit.last(max(0, n)) }
