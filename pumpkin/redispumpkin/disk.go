package redispumpkin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/spillway-go/spillway/pumpkin"
)

// disk is the file that holds the state for a start without Redis. Without a name it does nothing.
type disk struct {
	file   string
	log    *slog.Logger
	last   string // what is in it
	failed atomic.Bool
}

// restore gives p what the file holds. A file that cannot be understood is left aside: it must not keep a service from starting.
// The error says that the file cannot be written, so that a misspelt path is found at the start.
func (d *disk) restore(p *pumpkin.Pumpkin) error {
	if d.file == "" {
		return nil
	}
	text, err := os.ReadFile(d.file)
	if err == nil {
		var s pumpkin.State
		if s, err = pumpkin.ParseState(text); err == nil {
			_, err = p.Adopt(s)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Error("pumpkin: the snapshot file cannot be used; starting without it", slog.String("file", d.file), slog.Any("error", err))
	}
	if err := d.write(p.State()); err != nil {
		return fmt.Errorf("redispumpkin: the snapshot file: %w; name a file in a folder that this program may write to", err)
	}
	return nil
}

// save writes the state, if it is another one. A disk that fails is said once.
func (d *disk) save(s pumpkin.State) {
	err := d.write(s)
	if err == nil {
		d.failed.Store(false)
	} else if !d.failed.Swap(true) {
		d.log.Error("pumpkin: the snapshot file cannot be written; a start without Redis would begin with an older state",
			slog.String("file", d.file), slog.Any("error", err))
	}
}

// write replaces the file as a whole, so that a program that ends meanwhile leaves the old one or the new one.
func (d *disk) write(s pumpkin.State) error {
	text, err := json.Marshal(s)
	if err != nil || string(text) == d.last {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(d.file), filepath.Base(d.file)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), d.file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d.last = string(text)
	return nil
}
