package pumpkin

import (
	"errors"
	"sync"
	"time"
)

// How long a write waits until its record is in the file, and how many records wait for a file that takes none.
const (
	auditPatience = time.Second
	auditWaiting  = 1024
)

var (
	errAuditSlow = errors.New("the file has not taken it yet; it will when it can")
	errAuditFull = errors.New("the file takes nothing, and too much is waiting for it already")
)

// auditQueue brings lines into a file one after another, and in order. Whoever puts one waits until it is there, but not for a disk
// that hangs (a network file system whose server is gone, a pipe that nobody reads): a switch has to work then too, and so has
// the break-glass file. The zero value is ready.
type auditQueue struct {
	mu      sync.Mutex
	waiting []auditLine
	busy    bool // somebody is writing, until nothing waits
	stuck   bool // and has been at the same line for longer than a write waits
}

type auditLine struct {
	line []byte     // nil: only to hear that the ones before are done
	done chan error // of room for one
}

// put has write bring line into the file. The error is write's, or says that it is not known yet.
func (q *auditQueue) put(line []byte, write func([]byte) error) error {
	done := make(chan error, 1)
	q.mu.Lock()
	if len(q.waiting) >= auditWaiting {
		q.mu.Unlock()
		return errAuditFull
	}
	q.waiting = append(q.waiting, auditLine{line, done})
	if !q.busy {
		q.busy = true
		go q.drain(write)
	}
	stuck := q.stuck
	q.mu.Unlock()
	if stuck {
		return errAuditSlow
	}
	patience := time.NewTimer(auditPatience)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		q.mu.Lock()
		q.stuck = q.busy
		q.mu.Unlock()
		return errAuditSlow
	}
}

// drain writes what waits until nothing does.
func (q *auditQueue) drain(write func([]byte) error) {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.busy, q.waiting = false, nil
			q.mu.Unlock()
			return
		}
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		var err error
		if next.line != nil {
			err = write(next.line)
		}
		q.mu.Lock()
		q.stuck = false
		q.mu.Unlock()
		next.done <- err
	}
}

// close waits until nothing waits, but not for a disk that hangs.
func (q *auditQueue) close() {
	q.mu.Lock()
	busy := q.busy && len(q.waiting) < auditWaiting
	q.mu.Unlock()
	if busy {
		_ = q.put(nil, nil) // somebody is writing, or has just ended and then there is nothing to write
	}
}
