package configfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/shed"
)

// Watch keeps a running program at what its file says: Load reads the file, and Run follows the file: when it has changed and then been the same for a
// second, however the change came about, or at SIGHUP, at once and also if nothing seems to have changed, the file is read and
// laid over Program as Load does, and comes into force whole or not at all. A file that is wrong, empty or gone changes nothing,
// and neither does one that asks for what only a restart can change.
type Watch struct {
	// Path is the file, and Program the program's own configuration; both as for the function Load.
	Path    string
	Program Config
	// Flags makes in each Config that is read the changes that the program's flags ask for, which beat the file. Nil means that
	// there are none.
	Flags func(*Config)
	// Shedder is reloaded, and shows in its Status what became of each attempt; required by Run.
	Shedder *shed.Shedder
	// Apply takes over what is no business of the Shedder's, once the rest of next is in force, and tells what that changed, one
	// line each; nil means that there is nothing. Check says beforehand whether it can; nil means that it always can.
	Check func(next *Config) error
	Apply func(was, next *Config) (changes []string)
	// Report is told about each attempt. Nil writes it to the standard error.
	Report func(Outcome)
	// HangUp is what makes Run read the file at once. Nil means SIGHUP.
	HangUp <-chan os.Signal

	config  *Config // in force
	latest  *Config // the file that was read last
	content content // of the file that it is from
	file    stability
	look    looker
	beside  map[string]*looker // of the files that the file names, by their paths
	wrong   bool               // the last attempt failed
	signals chan os.Signal     // since Load, unless there is a HangUp
}

// Load reads the file for the first time, as the function Load does, and applies Flags. The program starts with what it
// returns, and Run goes on from there: a change in between is not missed, nor is a SIGHUP, which no longer ends the process.
func (w *Watch) Load() (*Config, error) {
	data, unread := read(w.Path)
	if unread != nil {
		return nil, Errors{unread}
	}
	c, err := Parse(w.Path, data, w.Program)
	if err != nil {
		return nil, err
	}
	w.latest = c
	if w.Flags != nil {
		w.Flags(c)
	}
	if w.HangUp == nil && w.signals == nil {
		w.signals = make(chan os.Signal, 1)
		signal.Notify(w.signals, syscall.SIGHUP)
	}
	own := *c
	w.config = &own
	w.content = w.whole(contentOf(data, nil), time.Now())
	return c, nil
}

// Outcome is what became of one attempt to take over a file.
type Outcome struct {
	Path string
	// Changes says what is different now, one line each; empty where the file says the same as before, only otherwise written.
	Changes []string
	// Warnings are what the file says to no effect, as in Config, as far as the file before did not say it.
	Warnings []string
	// Err is why nothing has changed: an Errors where the file is wrong.
	Err error
}

// String says it in one line, and one more for each change and warning; of a failure in a line for each mistake and one more.
func (o Outcome) String() string {
	if o.Err != nil {
		return o.Err.Error() + "\n" + o.Path + ": not taken over; the configuration before stays in force"
	}
	said := o.Path + ": read again, nothing to change"
	switch n := len(o.Changes); {
	case n == 1:
		said = o.Path + ": taken over, 1 change:\n  " + o.Changes[0]
	case n > 1:
		said = fmt.Sprintf("%s: taken over, %d changes:\n  %s", o.Path, n, strings.Join(o.Changes, "\n  "))
	}
	for _, w := range o.Warnings {
		said += "\n  warning: " + w
	}
	return said
}

// errNotBegun is what Run has to say where there is nothing to go on from.
var errNotBegun = errors.New("configfile: Watch.Run goes on from what Load has read, for a Shedder: call Load, set Watch.Shedder, then call Run")

// Run follows the file until ctx ends. Without Load before it, or without a Shedder, it reports that and returns at once. It uses the
// goroutine it is called on and leaves none behind.
func (w *Watch) Run(ctx context.Context) {
	if w.config == nil || w.Shedder == nil {
		w.report(Outcome{Path: w.Path, Err: errNotBegun})
		return
	}
	hangUp := w.HangUp
	if hangUp == nil {
		hangUp = w.signals
		defer signal.Stop(w.signals)
	}
	w.look.path = w.Path
	w.file.took(w.content)
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangUp:
			w.attempt(true)
		case now := <-t.C:
			if c, ok := w.look.look(now); ok && w.file.ripe(now, w.whole(c, now)) {
				w.attempt(false)
			}
		}
	}
}

// attempt reads the file and takes it over if that is possible. Whoever asked wants to hear also that nothing has changed.
func (w *Watch) attempt(asked bool) {
	data, unread := readAgain(w.Path)
	w.file.took(w.whole(contentOf(data, unread), time.Now()))
	var o Outcome
	if unread != nil {
		o = w.failed(Errors{unread})
	} else if w.file.taken == w.content && !asked && !w.wrong {
		return // changed and changed back
	} else {
		o = w.take(data)
	}
	w.wrong = o.Err != nil
	w.report(o)
}

// whole stands for what is in the file and in the one beside it that it names.
func (w *Watch) whole(c content, now time.Time) content {
	path := w.config.APIKeysFile
	if path == "" {
		return c
	}
	l := w.beside[path]
	if l == nil {
		l = &looker{path: path}
		w.beside = map[string]*looker{path: l}
	}
	keys, _ := l.look(now)
	return sha256.Sum256(append(c[:], keys[:]...))
}

// take lays a file over the program and puts it in force.
func (w *Watch) take(data []byte) Outcome {
	next, err := Parse(w.Path, data, w.Program)
	if err != nil {
		return w.failed(err)
	}
	w.latest = next
	if w.Flags != nil {
		w.Flags(next)
	}
	if err := w.config.restart(next); err != nil {
		return w.failed(err)
	}
	if w.Check != nil {
		if err := w.Check(next); err != nil {
			return w.failed(w.Located(err))
		}
	}
	changes, err := w.Shedder.Reload(next.Shed)
	if err != nil {
		return Outcome{Path: w.Path, Err: w.Located(err)} // the Shedder has taken note
	}
	if w.Apply != nil {
		changes = append(changes, w.Apply(w.config, next)...)
	}
	warnings := slices.DeleteFunc(slices.Clone(next.Warnings), func(said string) bool { return slices.Contains(w.config.Warnings, said) })
	w.config = next
	w.content = w.whole(contentOf(data, nil), time.Now())
	return Outcome{Path: w.Path, Changes: changes, Warnings: warnings}
}

// failed takes note of an attempt that did not come as far as the Shedder.
func (w *Watch) failed(err error) Outcome {
	w.Shedder.ReloadFailed(err)
	return Outcome{Path: w.Path, Err: err}
}

// Located puts the file's name in front of what the program has against what it says, and the line if the error names a key of the
// file.
func (w *Watch) Located(err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	var known places
	if w.latest != nil {
		known = w.latest.places
	}
	words := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == ' ' || r == ':' || r == ',' || r == ';' })
	for _, word := range words {
		if at, there := known[word]; there && strings.Contains(word, ".") { // a single word may be any
			return fmt.Errorf("%s: %w", located(w.Path, at), err)
		}
	}
	return fmt.Errorf("%s: %w", w.Path, err)
}

func (w *Watch) report(o Outcome) {
	if w.Report != nil {
		w.Report(o)
		return
	}
	_, _ = io.WriteString(os.Stderr, o.String()+"\n") // nobody can be told that nobody can be told
}
