package configfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

const quiet = "\nqueue: {capacity: 9}\n"

func quota(n string) string {
	return "limits:\n  - name: r\n    token_bucket: {capacity: " + n + ", refill: 1/s}\n"
}

// watched is a program that follows a file in a bubble of virtual time; the files are real.
type watched struct {
	*testing.T
	path    string
	shedder *shed.Shedder
	watch   *Watch
	hangUp  chan os.Signal

	mu       sync.Mutex
	outcomes []Outcome
}

func follow(t *testing.T, path string, change func(*Watch)) *watched {
	t.Helper()
	program := Config{Shed: shed.Config{Health: health.Config{Off: true}}, Pumpkin: Pumpkin{AdminListen: "127.0.0.1:1"}}
	hangUp := make(chan os.Signal)
	watch := &Watch{Path: path, Program: program, HangUp: hangUp}
	if change != nil {
		change(watch)
	}
	c, err := watch.Load()
	if err != nil {
		t.Fatal(err)
	}
	s, err := shed.New(c.Shed)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{T: t, path: path, shedder: s, watch: watch, hangUp: hangUp}
	watch.Shedder = s
	watch.Report = func(o Outcome) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outcomes = append(w.outcomes, o)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.watch.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		s.Close()
	})
	synctest.Wait()
	return w
}

func (w *watched) write(text string) {
	w.Helper()
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// after lets time pass and returns what was reported meanwhile.
func (w *watched) after(d time.Duration) []Outcome {
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.outcomes
	w.outcomes = nil
	return told
}

// capacity is that of the one limit in force.
func (w *watched) capacity() int64 {
	w.Helper()
	p, err := w.shedder.Admit(w.Context(), shed.Request{Client: time.Now().String()})
	if err != nil {
		w.Fatal(err)
	}
	defer p.Done(shed.Ignored)
	return p.Verdicts()[0].Policy.Rule().(limits.TokenBucket).Capacity
}

func (w *watched) becomes(want int64, within time.Duration, how string) {
	w.Helper()
	got := w.after(within)
	if len(got) != 1 || got[0].Err != nil || len(got[0].Changes) == 0 || w.capacity() != want {
		w.Fatalf("%s: %v in force, want %d; told %v", how, w.capacity(), want, got)
	}
}

func (w *watched) stays(want int64, during time.Duration, how string) {
	w.Helper()
	if got := w.after(during); len(got) != 0 || w.capacity() != want {
		w.Fatalf("%s: %v in force, want %d; told %v", how, w.capacity(), want, got)
	}
}

func TestAChangedFileComesIntoForceWhenItHasBeenStillForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s.yaml")
		os.WriteFile(path, []byte(quota("5")+quiet), 0o600)
		w := follow(t, path, nil)
		w.stays(5, time.Hour, "an hour without a change")
		w.write(quota("7") + quiet)
		w.stays(5, time.Second-time.Nanosecond, "within a second")
		w.becomes(7, lookEvery+time.Nanosecond, "after a second and a look")
		// Somebody writes piece by piece: nothing counts before the last piece has come.
		text := quota("9") + quiet
		for i := range 20 {
			w.write(text[:len(text)*(i+1)/20])
			w.stays(7, 700*time.Millisecond, "still writing")
		}
		w.becomes(9, 2*lookEvery+time.Second, "written")
		// Changed and changed back.
		w.write(quota("1") + quiet)
		w.stays(9, 500*time.Millisecond, "for a moment")
		w.write(text)
		w.stays(9, time.Minute, "back")
	})
}

func TestHoweverAFileIsReplacedItIsSeen(t *testing.T) {
	const soon = stableFor + 2*lookEvery
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		path := filepath.Join(folder, "s.yaml")
		os.WriteFile(path, []byte(quota("1")+quiet), 0o600)
		w := follow(t, path, nil)
		other := filepath.Join(folder, "s.yaml.new")

		os.WriteFile(other, []byte(quota("2")+quiet), 0o600)
		os.Rename(other, path)
		w.becomes(2, soon, "another in its place")

		os.Rename(path, path+"~")
		w.write(quota("3") + quiet)
		w.becomes(3, soon, "a backup, and a new one")

		os.Remove(path)
		w.stays(3, 500*time.Millisecond, "away for half a second")
		w.write(quota("4") + quiet)
		w.becomes(4, soon, "removed and made again")

		// The same size, with the time of before: as after a restore from a backup.
		info, _ := os.Stat(path)
		w.write(quota("5") + quiet)
		os.Chtimes(path, info.ModTime(), info.ModTime())
		w.becomes(5, lookAnyway+soon, "with the old time")
	})
	synctest.Test(t, func(t *testing.T) { // as Kubernetes mounts a ConfigMap
		folder := t.TempDir()
		for dir, n := range map[string]string{"..1": "1", "..2": "2"} {
			os.Mkdir(filepath.Join(folder, dir), 0o700)
			os.WriteFile(filepath.Join(folder, dir, "s.yaml"), []byte(quota(n)+quiet), 0o600)
		}
		data, path := filepath.Join(folder, "..data"), filepath.Join(folder, "s.yaml")
		os.Symlink("..1", data)
		os.Symlink(filepath.Join("..data", "s.yaml"), path)
		w := follow(t, path, nil)
		os.Symlink("..2", data+"_tmp")
		os.Rename(data+"_tmp", data)
		os.RemoveAll(filepath.Join(folder, "..1"))
		w.becomes(2, soon, "a swapped link")
	})
}

func TestHangUpReadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s.yaml")
		os.WriteFile(path, []byte(quota("5")+quiet), 0o600)
		w := follow(t, path, nil)
		w.write(quota("7") + quiet)
		w.hangUp <- syscall.SIGHUP
		w.becomes(7, 0, "SIGHUP")
		w.stays(7, time.Minute, "taken once")
		w.hangUp <- syscall.SIGHUP
		if got := w.after(0); len(got) != 1 || got[0].Err != nil || got[0].String() != path+": read again, nothing to change" {
			t.Errorf("told %v", got)
		}
		w.write("nonsense")
		w.hangUp <- syscall.SIGHUP
		w.hangUp <- syscall.SIGHUP
		if got := w.after(time.Minute); len(got) != 2 || got[0].Err == nil {
			t.Errorf("each SIGHUP is answered: %v", got)
		}
	})
}

func TestAFileThatIsWrongChangesNothingAndIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s.yaml")
		good := quota("5") + quiet
		os.WriteFile(path, []byte(good), 0o600)
		w := follow(t, path, func(w *Watch) {
			w.Check = func(next *Config) error {
				if slices.Contains(next.Shed.Clients.Identify, "principal") {
					return errors.New("no users here")
				}
				return nil
			}
		})
		for _, row := range []struct{ what, text, want string }{
			{"wrong", "limits:\n  - name: r\n    token_bucket: {capacity: x, refill: 1/s}\n", path + ":3: limits[0].token_bucket.capacity: "},
			{"empty", "", path + ":1: the file is empty; "},
			{"half", "limits: [", path + ":1: not valid YAML: "},
			{"binary", "\x00\x01", path + ":1: "},
			{"another listener", good + "pumpkin:\n  admin:\n    listen: 127.0.0.1:2\n",
				path + `:8: pumpkin.admin.listen: is "127.0.0.1:2" now, was "127.0.0.1:1", which needs a restart; restart the program, or put it back`},
			{"a token file", good + "pumpkin: {admin: {listen: \"127.0.0.1:1\", token_file: t}}\n", path + ":6: pumpkin.admin.token_file: "},
			{"another store", good + "store: {redis: {url: \"redis://127.0.0.1:6379/0\"}}\n", path + ":6: store: is not what the program started with, which needs a restart; "},
			{"a user's rule", good + "clients: {identify: [principal]}\n", path + ": no users here"},
			{"gone", "", path + ": there is no such file; "},
		} {
			if row.what == "gone" {
				os.Remove(path)
			} else {
				w.write(row.text)
			}
			got := w.after(10 * time.Minute)
			if len(got) != 1 || got[0].Err == nil || !strings.HasPrefix(got[0].String(), row.want) {
				t.Errorf("%s: told %v, want %s", row.what, got, row.want)
			}
			if w.capacity() != 5 {
				t.Errorf("%s: changed something", row.what)
			}
			if st := w.shedder.Status().Reloads; st.OK || st.Error == "" {
				t.Errorf("%s: the status says %+v", row.what, st)
			}
		}
		w.write(good)
		if got := w.after(time.Minute); len(got) != 1 || got[0].Err != nil || !w.shedder.Status().Reloads.OK {
			t.Errorf("mended: told %v, status %+v", got, w.shedder.Status().Reloads)
		}
	})
}

func TestFlagsBeatTheFileAndApplyIsToldWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s.yaml")
		os.WriteFile(path, []byte(quota("5")+quiet), 0o600)
		var polls []time.Duration
		w := follow(t, path, func(w *Watch) {
			w.Flags = func(next *Config) { next.Pumpkin.AdminListen = "127.0.0.1:9" }
			w.Apply = func(was, next *Config) []string {
				polls = append(polls, was.Pumpkin.PollAfter, next.Pumpkin.PollAfter)
				return []string{"pumpkin.poll_after: changed"}
			}
		})
		w.write(quota("5") + quiet + "pumpkin: {poll_after: 20s, admin: {listen: \"127.0.0.1:2\"}}\n")
		w.becomes(5, time.Minute, "the listener of a flag")
		w.write(quota("6") + quiet + "pumpkin: {poll_after: 30s}\n")
		w.becomes(6, time.Minute, "again")
		if want := []time.Duration{0, 20 * time.Second, 20 * time.Second, 30 * time.Second}; !slices.Equal(polls, want) {
			t.Errorf("told %v, want %v", polls, want)
		}
	})
}

func TestAnOutcomeReadsWell(t *testing.T) {
	for _, row := range []struct {
		o    Outcome
		want string
	}{
		{Outcome{Path: "f"}, "f: read again, nothing to change"},
		{Outcome{Path: "f", Changes: []string{"a"}}, "f: taken over, 1 change:\n  a"},
		{Outcome{Path: "f", Changes: []string{"a", "b"}}, "f: taken over, 2 changes:\n  a\n  b"},
		{Outcome{Path: "f", Changes: []string{"a"}, Warnings: []string{"f:1: x; y"}}, "f: taken over, 1 change:\n  a\n  warning: f:1: x; y"},
		{Outcome{Path: "f", Err: errors.New("f:1: x; y")}, "f:1: x; y\nf: not taken over; the configuration before stays in force"},
	} {
		if got := row.o.String(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

func TestAPipeIsNotFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	l := looker{path: path}
	if _, ok := l.look(time.Now()); ok { // would never return if it were read
		t.Error("a pipe is followed")
	}
}

// A program that was started with a pipe, or that finds one in its file's place, is not made to wait for it.
// What a changed file says to no effect is said when it is taken over, and once.
func TestAReloadWarnsOfWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s.yaml")
		os.WriteFile(path, []byte(quota("5")), 0o600)
		w := follow(t, path, nil)
		for i, c := range []struct {
			text string
			want int
		}{{quota("6") + "queue: {capacity: 0, max_wait: 1s}\n", 1}, {quota("7") + "queue: {capacity: 0, max_wait: 1s}\n", 0}, {quota("8"), 0}} {
			w.write(c.text)
			if told := w.after(time.Minute); len(told) != 1 || told[0].Err != nil || len(told[0].Warnings) != c.want {
				t.Errorf("%d: told %v", i, told)
			}
		}
	})
}

func TestHangingUpDoesNotWaitForAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s.yaml")
		os.WriteFile(path, []byte(quota("5")), 0o600)
		w := follow(t, path, nil)
		os.Remove(path)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		w.hangUp <- syscall.SIGHUP
		told := w.after(time.Minute)
		if len(told) != 1 || told[0].Err == nil || !strings.Contains(told[0].Err.Error(), "cannot be read again; put a file there") || w.capacity() != 5 {
			t.Fatalf("told %v", told)
		}
		os.Remove(path)
		w.write(quota("7"))
		w.becomes(7, 2*time.Second, "a file again")
	})
}

func TestAChangeOfTheAPIKeysIsTakenOverLikeOneOfTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		path, keys := filepath.Join(folder, "s.yaml"), filepath.Join(folder, "keys.yaml")
		list := func(names ...string) {
			text := "[]"
			for i, name := range names {
				if i == 0 {
					text = ""
				}
				text += "- {name: " + name + ", digest: \"" + shed.DigestKey(name, "").String() + "\"}\n"
			}
			if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list("alice")
		os.WriteFile(path, []byte("clients: {api_keys_file: keys.yaml}\n"+quota("5")), 0o600)
		w := follow(t, path, nil)
		known := func() (names []string) {
			for _, k := range w.shedder.Clients().APIKeys {
				names = append(names, k.Name)
			}
			return names
		}
		list("alice", "bob")
		if got := w.after(10 * time.Second); len(got) != 1 || got[0].Err != nil || len(got[0].Changes) != 1 || got[0].Changes[0] != "clients.api_keys changed" {
			t.Errorf("told %v", got)
		}
		if got := known(); !slices.Equal(got, []string{"alice", "bob"}) {
			t.Errorf("known: %v", got)
		}
		if got := w.after(time.Minute); len(got) != 0 {
			t.Errorf("nothing has changed since: %v", got)
		}
		os.WriteFile(keys, []byte("- {name: alice}"), 0o600)
		if got := w.after(time.Minute); len(got) != 1 || got[0].Err == nil || !strings.HasPrefix(got[0].String(), keys+":1: [0].digest: is missing") {
			t.Errorf("a list that is wrong: %v", got)
		}
		if got := known(); !slices.Equal(got, []string{"alice", "bob"}) {
			t.Errorf("known: %v", got)
		}
		list()
		if got := w.after(time.Minute); len(got) != 1 || got[0].Err != nil {
			t.Errorf("mended: %v", got)
		}
		if got := w.shedder.Clients().APIKeys; got == nil || len(got) != 0 {
			t.Errorf("an empty list knows no key: %#v", got)
		}
	})
}

// TestRunSaysWhatIsMissing: a Watch that has not begun follows nothing, and says so instead of failing at the first change.
func TestRunSaysWhatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(path, []byte(quota("9")), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []Outcome
	w := &Watch{Path: path, Report: func(o Outcome) { got = append(got, o) }, HangUp: make(chan os.Signal)}
	w.Run(t.Context())
	if _, err := w.Load(); err != nil {
		t.Fatal(err)
	}
	w.Run(t.Context()) // now it is the Shedder that is missing
	if len(got) != 2 || !errors.Is(got[0].Err, errNotBegun) || !errors.Is(got[1].Err, errNotBegun) || got[0].Path != path {
		t.Errorf("outcomes %v", got)
	}
}
