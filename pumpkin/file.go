package pumpkin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"
)

// FileEnv is the environment variable that programs take Config.File from when their configuration names none.
const FileEnv = "PUMPKIN_FILE"

// fileEvery is how often the break-glass file is looked at.
const fileEvery = time.Second

// glass watches the break-glass file: the last way to tell people something when the admin endpoint and the shared store
// are dead. While the file is there and sound, it alone says what is in force; what is done elsewhere meanwhile shows when
// it is gone. A file that cannot be understood changes nothing. It is read, not only looked at: mtimes are too coarse to
// tell a finished file from a half-written one.
type glass struct {
	path    string
	content string
	mtime   time.Time
	there   bool
	bad     bool
	stop    chan struct{}
	stopped chan struct{}
}

// watch looks at the file at once, so that it is in force from the first poll on, and then again and again.
func (p *Pumpkin) watch(path string) {
	p.glass = glass{path: path, stop: make(chan struct{}), stopped: make(chan struct{})}
	if path == "" {
		close(p.glass.stopped)
		return
	}
	p.look()
	go func() {
		defer close(p.glass.stopped)
		ticker := time.NewTicker(fileEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.look()
			case <-p.glass.stop:
				return
			}
		}
	}()
}

// look reads the file and does what it says if that is new.
func (p *Pumpkin) look() {
	g := &p.glass
	content, mtime, err := readGlass(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		if g.there {
			p.override("file_off", nil, "")
		}
		g.there, g.bad, g.content = false, false, ""
		return
	}
	if err == nil && g.content == content && g.mtime.Equal(mtime) && (g.there || g.bad) {
		return
	}
	news := !g.bad || g.content != content
	g.content, g.mtime = content, mtime
	var items []held
	if err == nil {
		items, err = p.parseGlass([]byte(content), time.Now(), mtime)
	}
	if g.bad = err != nil; g.bad {
		if news {
			p.log.Error("pumpkin: the break-glass file cannot be used; what was in force stays", slog.String("file", g.path), slog.Any("error", err))
			p.audit.add(Record{Actor: "file", Action: "file_bad", Rev: p.current.Load().board.rev}.refused(err))
		}
		return
	}
	g.there = true
	p.override("file_on", &override{items}, mtime.UTC().Format(time.RFC3339))
}

// readGlass reads a file that is small: the rest of a larger one makes it unsound. A pipe in its place would be waited for
// without end, and nothing that is put there later would be seen.
func readGlass(path string) (content string, mtime time.Time, err error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file but a %s", path, kindOf(info.Mode()))
	}
	if err != nil {
		return "", time.Time{}, err
	}
	if content, err = readSmall(path); err != nil {
		return "", time.Time{}, err
	}
	if info, err = os.Stat(path); err != nil { // again, so that the time is not older than the content
		return "", time.Time{}, err
	}
	return content, info.ModTime(), nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	}
	return "device"
}

// override makes o what the public sees; nil gives the board back.
func (p *Pumpkin) override(action string, o *override, written string) {
	b, err := p.change(func(_ time.Time, b board) (board, error) { return b.overrule(o), nil })
	if err != nil {
		return // closed
	}
	p.audit.add(Record{Actor: "file", Action: action, Rev: b.rev, Applied: applied(false)})
	p.log.Warn("pumpkin: "+map[bool]string{true: "the break-glass file rules now", false: "the break-glass file is gone"}[o != nil],
		slog.String("file", p.glass.path), slog.String("written", written), slog.Uint64("rev", b.rev), slog.Int("items", len(b.shown())))
}

// overrule returns the board that shows o, or its own items if o is nil.
func (b board) overrule(o *override) board {
	shown := map[string]Notice{}
	for _, h := range b.shown() {
		shown[h.notice.ID] = h.notice
	}
	if o != nil {
		o = &override{slices.Clone(o.items)}
		for i := range o.items {
			n := &o.items[i].notice
			n.NoticeRev = b.rev + 1
			if before, ok := shown[n.ID]; ok && before.sameToPeople(*n) {
				n.NoticeRev = before.NoticeRev
			}
		}
		sortItems(o.items)
	}
	b.over = o
	return b.publish()
}

// parseGlass reads the break-glass file: {"items": {ID: item, …}}, where {} clears the board; {"template": NAME}; or one
// item alone. An item is what PUT /items/{id} takes; reason may be missing, and without a ttl, which counts from when the
// file was written, an item lasts as long as the file.
func (p *Pumpkin) parseGlass(content []byte, now, written time.Time) ([]held, error) {
	entries := map[string]Entry{}
	fields := map[string]json.RawMessage{}
	err := eachField(content, func(name string, raw json.RawMessage) error {
		fields[name] = raw
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case fields["items"] != nil:
		if len(fields) > 1 {
			return nil, refuse(UnknownField, "items stands alone")
		}
		var items map[string]json.RawMessage
		if err := json.Unmarshal(fields["items"], &items); err != nil {
			return nil, wrongType("items", err)
		}
		for id, raw := range items {
			if entries[id], err = p.glassEntry(raw); err != nil {
				return nil, err
			}
		}
	case fields["template"] != nil:
		if entries[modeID], err = p.glassEntry(content); err != nil {
			return nil, err
		}
	default:
		if entries["file"], err = p.glassEntry(content); err != nil {
			return nil, err
		}
	}
	if len(entries) > maxItems {
		return nil, refuse(TooManyItems, "%d items, at most %d", len(entries), maxItems)
	}
	b := p.current.Load().board
	var items []held
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		e := entries[id]
		if err := e.check(id, b.lang); err != nil {
			return nil, err
		}
		h := held{notice: e.notice(id), updated: sameMoment(now, written), origin: FromFile, actor: "file", reason: e.Reason, ticket: e.Ticket, template: e.Template}
		if e.TTL > 0 {
			if h.expires = sameMoment(now, written).Add(e.TTL); !now.Before(h.expires) {
				continue // over before it was read
			}
		}
		items = append(items, h)
	}
	if n := len(b.documentOf(items).render()); n > maxDocument {
		return nil, refuse(DocumentTooLarge, "the document would be %d bytes, at most %d", n, maxDocument)
	}
	return items, nil
}

// glassEntry reads one item of the file, which may be a prepared text.
func (p *Pumpkin) glassEntry(raw []byte) (Entry, error) {
	var e Entry
	var template string
	err := eachField(raw, func(name string, raw json.RawMessage) error {
		switch name {
		case "template":
			if err := json.Unmarshal(raw, &template); err != nil {
				return wrongType(name, err)
			}
			return nil
		case "starts_at":
			return refuse(UnknownField, "starts_at: what a file says counts at once")
		}
		return e.setField(name, raw)
	})
	if err != nil {
		return e, err
	}
	if template != "" {
		prepared, ok := p.Template(template)
		if !ok {
			return e, refuse(UnknownTemplate, "template: there is no prepared text %q", template)
		}
		if e.Severity != "" || e.Message != nil || e.Features != nil || e.URL != "" || e.LinkText != "" {
			return e, refuse(InvalidField, "template: leave out what the prepared text says")
		}
		prepared.TTL, prepared.Reason, prepared.Ticket = e.TTL, e.Reason, e.Ticket
		e = prepared
	}
	if e.Reason == "" {
		e.Reason = "break-glass file"
	}
	return e, nil
}
