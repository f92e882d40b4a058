package results

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/measure"
)

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFilesThatCannotBeTrustedAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema":2,"runs":"a new form"}`: "newer than this program",
		`{"runs":[]}`:                      "no schema",
		`nonsense`:                         "not a result file",
		`{"schema":1,"runs":3}`:            "cannot unmarshal",
		`{"schema":1,"runs":[null]}`:       "there is none",
		`{"schema":1,"runs":[{"series":{"points":[{}]}}]}`:                                     "window of 0",
		`{"schema":1,"runs":[{"fine":{"asked":[1]}}]}`:                                         "fine",
		`{"schema":1,"runs":[{"phases":[{"end_us":-1}]}]}`:                                     "phase",
		`{"schema":1,"runs":[{"phases":[{"populations":[{}]},{}]}]}`:                           "phase",
		`{"schema":1,"runs":[{"phases":[{"populations":[{}]}],"clients":[{"population":7}]}]}`: "client 0",
		`{"schema":1,"map":{"seconds":[1],"recovery":{"none":[]}}}`:                            "map",
	} {
		if _, err := Read(write(t, text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line about %q", text, err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "missing.json")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f := &File{Command: "run", Env: ReadEnv(), Verdicts: []judge.Verdict{{Name: "row", Status: judge.Pass}}, Runs: []*measure.Run{{Scenario: "s"}}}
	var b bytes.Buffer
	if err := f.Encode(&b); err != nil {
		t.Fatal(err)
	}
	back, err := Read(write(t, b.String()))
	if err != nil || back.Verdicts[0].Name != "row" || back.Runs[0].Scenario != "s" || back.Env.MaxProcs < 1 {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"schema":1,"runs":[{"phases":[{"populations":[{"latency":["HISTFAAAABx4nJNpmSzMwMDAxAABzFCaEUoz2X+AMIKZAEARAtM=","","","",""]}]}]}]}`)
	f.Add(`{"schema":1,"verdicts":[{"value":"+Inf","low":1e400}]}`)
	f.Add(`{"schema":1,"runs":[{"series":{"window_us":0,"points":[{}]},"clients":[{"population":7}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Read(write(t, text)); err == nil {
			r.Exit()
		}
	})
}

func TestExitCodes(t *testing.T) {
	rows := func(all ...judge.Status) (f File) {
		for _, s := range all {
			f.Verdicts = append(f.Verdicts, judge.Verdict{Status: s})
		}
		return f
	}
	for _, c := range []struct {
		f    File
		want int
	}{
		{rows(), 0}, {rows(judge.Pass, judge.Pending), 0}, {rows(judge.Pass, judge.Fail), 1}, {rows(judge.Fail, judge.Invalid), 3},
		{File{Runs: []*measure.Run{{Invalid: "late"}}}, 3},
	} {
		if code := c.f.Exit(); code != c.want {
			t.Errorf("%v: %d, want %d", c.f.Verdicts, code, c.want)
		}
	}
}
