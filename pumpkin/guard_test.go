package pumpkin

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// knock asks for the items with the given Authorization lines.
func knock(p *Pumpkin, lines ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://127.0.0.1:9180/items", nil)
	r.Header["Authorization"] = lines
	w := httptest.NewRecorder()
	p.Admin().ServeHTTP(w, r)
	return w
}

func TestOnlyTheTokenAsGivenIsLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		wrong := [][]string{
			nil, {""}, {"Bearer"}, {"Bearer "}, {testToken}, {"Basic " + testToken}, {"Token " + testToken}, {"Bearer" + testToken},
			{"Bearer " + strings.ToUpper(testToken)},
			{"Bearer " + testToken[:len(testToken)-1]},
			{"Bearer " + testToken + "x"},
			{"Bearer " + testToken + "\x00"},
			{"Bearer " + testToken + " x"},
			{"Bearer " + base64.StdEncoding.EncodeToString([]byte(testToken))},
			{"Bearer " + testToken + "," + testToken},
			{"Bearer " + strings.Repeat("x", 100_000)},
			{"Bearer wrong", "Bearer " + testToken},
			{"Bearer " + testToken, "Bearer " + testToken},
			{"\tBearer\t" + testToken},
		}
		for i, lines := range wrong {
			w := knock(p, lines...)
			answers(t, w, 401, Unauthorized)
			if got := w.Header().Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer ") {
				t.Errorf("%q: WWW-Authenticate %q", lines, got)
			}
			if got := p.Status().AdminFailures; got != uint64(i+1) {
				t.Errorf("%q: %d failures counted, want %d", lines, got, i+1)
			}
		}
		for _, line := range []string{"Bearer " + testToken, "bearer " + testToken, "BEARER  " + testToken + " "} {
			answers(t, knock(p, line), 200, "")
		}
	})
}

func TestManyFailuresAreThrottledButNeverARightToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		for range failBurst {
			answers(t, knock(p, "Bearer wrong"), 401, Unauthorized)
		}
		for range 1000 {
			w := knock(p, "Bearer wrong")
			answers(t, w, 429, TooManyFailures)
			if got := w.Header().Get("Retry-After"); got != "1" {
				t.Fatalf("Retry-After %q", got)
			}
			answers(t, knock(p, "Bearer "+testToken), 200, "")
		}
		if got := p.Status().AdminFailures; got != failBurst+1000 {
			t.Errorf("%d failures counted", got)
		}
		time.Sleep(failEvery) // as long as Retry-After said
		answers(t, knock(p, "Bearer wrong"), 401, Unauthorized)
		answers(t, knock(p, "Bearer wrong"), 429, TooManyFailures)
	})
}

func TestNoTokenLetsNobodyIn(t *testing.T) {
	p, err := New(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, line := range []string{"", "Bearer", "Bearer ", "Bearer x"} {
		answers(t, knock(p, line), 401, Unauthorized)
	}
}

func TestAdminTokenSources(t *testing.T) {
	dir := t.TempDir()
	file := func(content string) string {
		path := filepath.Join(dir, "token")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const fromEnv = "0123456789abcdef0123456789abcdef"
	const odd = "name:0123456789abcdef0123456789abcdef" // a token as given, for a name is followed by a space
	sole := func(secret string) []Token { return []Token{{Name: "admin", Digest: sha256.Sum256([]byte(secret))}} }
	hashed := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(fromEnv)))
	for name, c := range map[string]struct {
		content, env string
		want         []Token
	}{
		"file":         {testToken, "", sole(testToken)},
		"line feed":    {testToken + "\n", fromEnv, sole(testToken)},
		"CR LF":        {testToken + "\r\n", fromEnv, sole(testToken)},
		"with a colon": {odd, "", sole(odd)},
		"environment":  {"", fromEnv, sole(fromEnv)},
		"names": {
			"# on call\nada: " + testToken + "\r\n\n  bob read:  " + odd + " \neve: " + hashed + "\n", "",
			[]Token{
				{Name: "ada", Digest: sha256.Sum256([]byte(testToken))},
				{Name: "bob", Digest: sha256.Sum256([]byte(odd)), ReadOnly: true},
				{Name: "eve", Digest: sha256.Sum256([]byte(fromEnv))},
			},
		},
		"one name": {"ada: " + testToken, "", []Token{{Name: "ada", Digest: sha256.Sum256([]byte(testToken))}}},
	} {
		path := ""
		if c.content != "" {
			path = file(c.content)
		}
		if got, made, err := AdminTokens(path, c.env); err != nil || !slices.Equal(got, c.want) || made != "" {
			t.Errorf("%s: %+v, %q, %v", name, got, made, err)
		}
	}
	tokens, one, err := AdminTokens("", "")
	_, two, _ := AdminTokens("", "")
	if err != nil || one == two || checkToken(one) != nil || !slices.Equal(tokens, sole(one)) {
		t.Errorf("random: %q and %q, %v", one, two, err)
	}
}

func TestBadTokensAreRefusedWithoutBeingShown(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const good = "0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct{ file, env, want string }{
		"short file":        {write("short", "hunter2"), good, "has 7 characters, at least 32"},
		"empty file":        {write("empty", "\n"), good, "has 0 characters"},
		"two lines":         {write("two", good+"\n"+good+"\n"), good, "(line 1) has a space or a character that is not printable ASCII"},
		"file with a space": {write("space", good+" "), good, "has a space"},
		"not ASCII":         {write("latin", good+"é"), good, "not printable ASCII"},
		"huge file":         {write("huge", strings.Repeat("x", 17<<10)), good, "longer than such a file can be"},
		"missing file":      {filepath.Join(dir, "missing"), good, "no such file"},
		"folder":            {dir, good, "token_file"},
		"only a comment":    {write("none", "# nothing\n\n"), good, "is not there"},
		"one name twice":    {write("twice", "a: "+good+"\na: x"+good+"\n"), good, "(line 2) has the name"},
		"one token twice":   {write("same", "a: "+good+"\nb: "+good+"\n"), good, "(line 2) has the name"},
		"short of a name":   {write("named", "a: "+good+"\nb: hunter2\n"), good, "(line 2) has 7 characters"},
		"no name":           {write("noname", "a: "+good+"\n: "+good+"\n"), good, "(line 2) has a space"},
		"bad digest":        {write("digest", "a: sha256:00\n"), good, "is no digest"},
		"short environment": {"", "hunter2", TokenEnv + " has 7 characters"},
		"a variable's name": {"", TokenEnv, "has 20 characters"},
	} {
		tokens, made, err := AdminTokens(c.file, c.env)
		if err == nil || tokens != nil || made != "" || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "pumpkin: admin token") {
			t.Errorf("%s: %v, %v; want an error with %q", name, tokens, err, c.want)
			continue
		}
		for _, secret := range []string{"hunter2", good, strings.Repeat("x", 40)} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows the token: %v", name, err)
			}
		}
	}
}

func TestConfigIsRefusedWithWhatToMend(t *testing.T) {
	for want, c := range map[string]Config{
		"PollAfter is 1s":       {PollAfter: time.Second},
		"PollAfter is -1s":      {PollAfter: -time.Second},
		"PollAfter is 11m0s":    {PollAfter: 11 * time.Minute},
		"PollAfter is 5.5s":     {PollAfter: 5500 * time.Millisecond},
		"PollIdle is 5s, short": {PollAfter: time.Minute, PollIdle: 5 * time.Second},
		"DefaultLang \"e n\"":   {DefaultLang: "e n"},
		"Token has 5":           {Token: "short"},
	} {
		p, err := New(c)
		if err == nil || p != nil || !strings.HasPrefix(err.Error(), "pumpkin: "+want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	p, err := New(Config{PollAfter: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if d := p.Document(); d.PollAfter != 120 {
		t.Errorf("idle poll_after %d", d.PollAfter)
	}
}
