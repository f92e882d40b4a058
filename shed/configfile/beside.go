package configfile

import (
	"fmt"
	"os"
	"path/filepath"

	banner "github.com/spillway-go/spillway/pumpkin"
)

// use is what a program does with a file that the configuration names.
type use uint8

const (
	readOnce  use = iota // at the start
	readLater            // it need not be there yet
	appended             // made if it is not there
	replaced             // by another one beside it
)

// otherFile is a file that the configuration names under a key; the path is empty where it does not.
type otherFile struct {
	key  string
	use  use
	path string
}

// beside lists the files that a configuration can name.
func (c *Config) beside() []otherFile {
	return []otherFile{
		{"clients.api_keys_file", readOnce, c.APIKeysFile},
		{"store.redis.password_file", readOnce, c.Store.Redis.PasswordFile},
		{"store.regions.password_file", readOnce, c.Store.Regions.PasswordFile},
		{"pumpkin.file", readLater, c.Pumpkin.File},
		{"pumpkin.redis.password_file", readOnce, c.Pumpkin.Redis.PasswordFile},
		{"pumpkin.redis.snapshot_file", replaced, c.Pumpkin.Redis.SnapshotFile},
		{"pumpkin.admin.token_file", readOnce, c.Pumpkin.TokenFile},
		{"pumpkin.admin.audit_file", appended, c.Pumpkin.AuditFile},
	}
}

// otherFiles refuses paths at which there is no file, for opening a pipe can take without end, and files that are written and are
// something else as well.
func (c *Config) otherFiles(p *problems) {
	purpose := map[string]string{filepath.Clean(c.path): "this file itself"}
	for _, other := range c.beside() {
		if other.path != "" && other.use < appended {
			purpose[filepath.Clean(other.path)] = other.key
		}
	}
	for _, f := range c.beside() {
		v, there := p.at(f.key)
		if f.path == "" || !there {
			continue
		}
		if info, err := os.Stat(f.path); err == nil && !(f.use == appended && inherited(f.path)) {
			if wrong := noFile(f.path, info.Mode()); wrong != nil {
				v.fail(shown(f.path)+": "+wrong.What, wrong.Mend)
			}
		}
		if f.use < appended {
			continue
		}
		if other := purpose[filepath.Clean(f.path)]; other != "" {
			v.fail(shown(f.path)+" would be written over, and is "+other+" too", "give each a file of its own")
		}
		purpose[filepath.Clean(f.path)] = f.key
	}
}

// CheckFiles looks whether the files that the configuration names can be used by this user, without changing anything. What it
// returns, one "PATH:LINE:COLUMN: what; how to mend" each, would end a start.
func (c *Config) CheckFiles() (warnings []string) {
	for _, f := range c.beside() {
		if why := f.unusable(); why != "" {
			warnings = append(warnings, c.Place(f.key)+": "+f.key+": "+why)
		}
	}
	return warnings
}

// unusable says why this user cannot use the file, or "".
func (f otherFile) unusable() string {
	path, folder := f.path, filepath.Dir(f.path)
	switch {
	case path == "", f.key == "clients.api_keys_file": // was read with the configuration
	case f.key == "pumpkin.admin.token_file":
		if _, _, err := banner.AdminTokens(path, ""); err != nil {
			return err.Error()
		}
	case f.use == readOnce:
		if _, err := passwordIn(path); err != nil {
			return err.Error()
		}
	case f.use == readLater:
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return fmt.Sprintf("there is no folder %s that the file could be put into; make it, or name another one", shown(folder))
		}
		if exists(path) && !may(path, toRead) {
			return fmt.Sprintf("this user may not read %s; change its permissions, such as chmod a+r", shown(path))
		}
	case f.use == appended && exists(path):
		if !may(path, toWrite) {
			return fmt.Sprintf("this user may not write to %s; change its permissions or its owner", shown(path))
		}
	default:
		if info, err := os.Stat(folder); err != nil || !info.IsDir() || !may(folder, toWrite|toEnter) {
			return fmt.Sprintf("this user cannot make a file in %s; name a folder that this program may write to", shown(folder))
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
