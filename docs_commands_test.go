package spillway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// elsewhere are programs of the system that documents may tell to call; nothing is tried of them.
const elsewhere = " apt-get bash cd cp docker export git kill mv openssl redis-cli redis-server ssh sha256sum sudo "

// withCurl finds calls of curl, and no remark about it.
var withCurl = regexp.MustCompile(`(?m)^[^#\n]*\bcurl `)

// inProse finds commands in running text.
var inProse = regexp.MustCompile("`((?:go run|go test|go -C|make|bash) [^`]+)`")

// settings are what stands in front of a command, or alone.
var settings = regexp.MustCompile(`^\s*(?:[A-Z_]+=(?:"[^"]*"|'[^']*'|\$\([^)]*\)|[^\s;]*);?\s*)+`)

// TestEveryCommandInTheDocumentsExists looks whether each program, target and flag that a document names is there.
func TestEveryCommandInTheDocumentsExists(t *testing.T) {
	tools := newToolbox(t)
	for _, b := range blocks(t, "sh") {
		text := strings.ReplaceAll(b.text, "\\\n", " ")
		for line := range strings.Lines(text) {
			if why := tools.missing(line); why != "" {
				t.Errorf("%s: %q: %s", b, strings.TrimSpace(line), why)
			}
		}
	}
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inProse.FindAllStringSubmatch(string(text), -1) {
			if why := tools.missing(m[1]); why != "" {
				t.Errorf("%s: %q: %s", page, m[1], why)
			}
		}
	}
}

func TestTheCheckOfCommandsCanFail(t *testing.T) {
	tools := newToolbox(t)
	for line, fine := range map[string]bool{
		"make test ARGS=-quick":                          true,
		"make coffee":                                    false,
		"go run ./examples/demo -tour # plays":           true,
		"go run ./examples/demo -tea":                    false,
		"go run ./examples/coffee":                       false,
		"go run ./bench run -target URL":                 true,
		"go run ./bench run -tea URL":                    false,
		"go run ./bench drink":                           false,
		"SPILLWAY_PEER_SECRET=... gateway -self URL ...": true,
		"gateway -tea":                                   false,
		"teapot":                                         false,
		"# a remark":                                     true,
		`A="one two"; B=$(date -u); make test`:           true,
		`A="one two"; make coffee`:                       false,
	} {
		if why := tools.missing(line); (why == "") != fine {
			t.Errorf("%q: %q", line, why)
		}
	}
}

// toolbox builds programs once and remembers what they say of themselves.
type toolbox struct {
	t        *testing.T
	makefile string
	help     map[string]string
}

func newToolbox(t *testing.T) *toolbox {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	return &toolbox{t: t, makefile: string(text), help: map[string]string{}}
}

// missing says what a line names that is not there.
func (x *toolbox) missing(line string) string {
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(settings.ReplaceAllString(line, ""))
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return ""
	}
	switch program := words[0]; {
	case program == "make":
		for _, target := range words[1:] {
			if !strings.Contains(target, "=") && !strings.Contains(x.makefile, "\n"+target+":") {
				return "the Makefile has no target " + target
			}
		}
		return ""
	case program == "go" && len(words) > 2 && words[1] == "run":
		return x.program(words[2], words[3:])
	case program == "go" && len(words) > 4 && words[1] == "-C" && words[3] == "run":
		return x.program("./"+filepath.Join(words[2], words[4]), nil)
	case program == "go" && len(words) > 2 && (words[1] == "test" || words[1] == "get"):
		for _, word := range words[2:] {
			if folder, ok := strings.CutPrefix(word, "./"); ok && !strings.Contains(folder, "...") && !exists(folder) {
				return "there is no folder " + folder
			}
		}
		return ""
	case program == "gateway" || program == "demo":
		return x.program("./examples/"+program, words[1:])
	case program == "curl" || program == "echo": // TestTheCommandsOfTheDocumentsWork
		return ""
	case program == "bash" && len(words) > 1 && strings.HasPrefix(words[1], ".") && !exists(words[1]):
		return "there is no file " + words[1]
	case strings.Contains(elsewhere, " "+program+" "):
		return ""
	}
	return "this test does not know " + words[0]
}

// program checks a program's folder, command and flags.
func (x *toolbox) program(folder string, args []string) string {
	if text := textOf(folder, ".go"); !strings.Contains(text, "\nfunc main()") {
		return folder + " is no program"
	}
	command := ""
	if folder == "./bench" && len(args) > 0 {
		command = args[0]
		if !strings.Contains(x.says(folder, "help"), "\n  "+command) && command != "help" {
			return folder + " has no command " + command
		}
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "[-"), "=")
		name = strings.TrimRight(name, "]")
		if !strings.HasPrefix(strings.TrimLeft(arg, "["), "-") || name == "" {
			continue
		}
		help := x.says(folder, strings.TrimSpace(command+" -h"))
		if !regexp.MustCompile(`(?m)(^|[\s\[])-` + regexp.QuoteMeta(name) + `\b`).MatchString(help) {
			return folder + " has no flag -" + name
		}
	}
	return ""
}

// says is what a program answers.
func (x *toolbox) says(folder, args string) string {
	x.t.Helper()
	if said, ok := x.help[folder+" "+args]; ok {
		return said
	}
	binary := build(x.t, folder)
	said, _ := exec.Command(binary, strings.Fields(args)...).CombinedOutput() // -h may end with any code
	x.help[folder+" "+args] = "\n" + string(said)
	return x.help[folder+" "+args]
}

// built is where programs are built, once for all tests.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "spillway"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(built)
	os.Exit(code)
}

func build(t *testing.T, folder string) string {
	t.Helper()
	binary := filepath.Join(built, strings.ReplaceAll(filepath.Clean(folder), "/", "-"))
	if !exists(binary) {
		if out, err := exec.Command("go", "build", "-o", binary, folder).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", folder, err, out)
		}
	}
	return binary
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// TestTheCommandsOfTheDocumentsWork runs every block with curl against a demo, and checks what the break-glass file says.
func TestTheCommandsOfTheDocumentsWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("this test needs curl; install it with: apt-get install -y curl (make test does so)")
	}
	glass := t.TempDir()
	app, admin, token := startDemo(t, filepath.Join(glass, "pumpkin.json"))
	ran := 0
	for _, b := range blocks(t, "sh") {
		switch {
		case withCurl.MatchString(b.text):
			ran++
			if out, err := shell(t, strings.NewReplacer("http://127.0.0.1:8080", app, "http://127.0.0.1:9180", admin).Replace(b.text), glass, token); err != nil {
				t.Errorf("%s: %v\n%s", b, err, out)
			}
		case strings.Contains(b.text, "> pumpkin.json"):
			ran++
			for line := range strings.Lines(b.text) {
				if out, err := shell(t, line, glass, token); err != nil {
					t.Fatalf("%s: %v\n%s", b, err, out)
				}
				shows(t, app, strings.Contains(line, "template"))
			}
			_ = os.Remove(filepath.Join(glass, "pumpkin.json"))
		}
	}
	if ran < 3 {
		t.Errorf("only %d blocks were run", ran)
	}
	if out, err := shell(t, "curl -X PUT "+admin+"/items/x -d '{}'", glass, token); err == nil {
		t.Errorf("the control, which has no token, passes: %s", out)
	}
}

// shell runs lines of a document. What a server refuses as wrong ends them; 429 and 503 are answers that documents show.
func shell(t *testing.T, text, folder, token string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euc", `
curl() {
	local said; said=$(command curl -sS -w '\n%{http_code}' "$@"); echo "$said"
	case ${said##*$'\n'} in 4[0134]*|4[12][0-8]|500|502) echo "refused: $*"; exit 1;; esac
}
`+text)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "SPILLWAY_ADMIN_TOKEN="+token)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// shows waits until the document says that something is wrong, or that nothing is.
func shows(t *testing.T, app string, active bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(app + "/pumpkin.json")
		if err != nil {
			t.Fatal(err)
		}
		var document struct{ Active bool }
		err = json.NewDecoder(res.Body).Decode(&document)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if document.Active == active {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute after the file was written active is not %v", active)
		}
	}
}

// startDemo runs the demo until the test ends and returns where it is.
func startDemo(t *testing.T, glass string) (app, admin, token string) {
	t.Helper()
	token = strings.Repeat("for-this-test-", 3)
	cmd := exec.Command(build(t, "./examples/demo"), "-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "SPILLWAY_ADMIN_TOKEN="+token, "PUMPKIN_FILE="+glass)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo ends with %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if _, rest, ok := strings.Cut(line, "live page"); ok {
			app = strings.TrimSuffix(strings.TrimSpace(rest), "/")
		}
		if _, rest, ok := strings.Cut(line, "  admin  "); ok {
			admin = strings.TrimSuffix(strings.Fields(rest)[0], "/")
		}
		if strings.Contains(line, "Ctrl-C") {
			return app, admin, token
		}
	}
	t.Fatal("the demo did not greet")
	return
}

// TestTheAnswersOfTheDocumentsAreTheRealOnes asks what the README's first lines of code protect, once and until they refuse; other pages
// leave the limit per address out.
func TestTheAnswersOfTheDocumentsAreTheRealOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that nothing refills meanwhile
		first, refused := answers(t, perClient)
		firstOfReadme, refusedOfReadme := answers(t, perClient, perIP)
		for _, b := range blocks(t, "http") {
			w := first
			switch refusal := strings.HasPrefix(b.text, "HTTP/1.1 429"); {
			case b.file == "README.md" && refusal:
				w = refusedOfReadme
			case b.file == "README.md":
				w = firstOfReadme
			case refusal:
				w = refused
			}
			for line := range strings.Lines(b.text) {
				line = strings.TrimSpace(line)
				name, value, ok := strings.Cut(line, ": ")
				if !ok {
					if got := fmt.Sprintf("HTTP/1.1 %d %s", w.Code, http.StatusText(w.Code)); line != got {
						t.Errorf("%s says %q, it is %q", b, line, got)
					}
					continue
				}
				if got := w.Header().Get(name); got != value {
					t.Errorf("%s says %s: %s, it is %q", b, name, value, got)
				}
			}
		}
	})
}

// answers returns what a client sees first, and what it sees when it is refused.
func answers(t *testing.T, all ...shed.Limit) (first, refused *httptest.ResponseRecorder) {
	t.Helper()
	s, err := shed.New(shed.Config{Limits: all})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h := middleware.Shed(s)(http.NotFoundHandler())
	for range 1000 {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); first == nil {
			first = w
		}
		if w.Code == http.StatusTooManyRequests {
			return first, w
		}
	}
	t.Fatal("nothing is refused")
	return nil, nil
}
