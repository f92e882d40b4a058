package results

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/bench/judge"
	"github.com/spillway-go/spillway/bench/measure"
)

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFilesOfANewerProgramAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema":2,"runs":"a new form"}`: "newer than this program",
		`{"runs":[]}`:                      "no schema",
		`nonsense`:                         "not a result file",
		`{"schema":1,"runs":3}`:            "cannot unmarshal",
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
