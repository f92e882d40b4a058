package pumpkin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// token makes a Token of a secret that the tests know.
func token(t *testing.T, name string, readOnly bool) Token {
	t.Helper()
	tok, err := NewToken(name, name+"-"+testToken)
	if err != nil {
		t.Fatal(err)
	}
	tok.ReadOnly = readOnly
	return tok
}

// as is the Authorization header of a bearer.
func as(name string) []string { return []string{"Authorization", "Bearer " + name + "-" + testToken} }

func TestEverythingIsAuditedUnderTheBearersName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "audit.jsonl")
		p := open(t, Config{Tokens: []Token{token(t, "ada", false), token(t, "bob", true)}, AuditFile: file})
		call(p, "PUT", "/items/x", body(`,"ticket":"OPS-7","ttl":"10m"`), as("ada")...)
		call(p, "PUT", "/items/x", body(`,"ttl":"25h"`), as("ada")...)
		call(p, "PUT", "/items/x", body(""), append(as("ada"), "If-Match", `"9"`)...)
		call(p, "PUT", "/items/x?x=1", body(""), as("ada")...)
		call(p, "PUT", "/items/x", "{", as("ada")...)
		call(p, "PUT", "/items/x", body(`,"features":{"*":{"off":1}}`), as("ada")...)
		answers(t, call(p, "DELETE", "/items/x", "", as("bob")...), 403, ReadOnly)
		answers(t, call(p, "GET", "/items/x", "", as("bob")...), 200, "")
		answers(t, call(p, "PUT", "/items/x", body(""), "Authorization", "Bearer wrong"), 401, Unauthorized)
		answers(t, call(p, "PUT", "/items/x", body(""), "Origin", "https://evil.example"), 403, CrossOrigin)
		call(p, "DELETE", "/items/nothing", "")
		call(p, "PUT", "/mode", `{"on":true,"template":"site-down","ttl":"11m","reason":"fire"}`)
		call(p, "DELETE", "/mode", "")
		call(p, "PUT", "/force_off/x", `{"reason":"no"}`)
		call(p, "DELETE", "/force_off/x", "")
		_ = p.Raise("lag", "y", off("busy", 1, "y"))
		_, _ = p.Lower("lag", "y")
		_, _ = p.Lower("lag", "y") // nothing to do is nothing to tell
		time.Sleep(10 * time.Minute)
		synctest.Wait()

		var got []string
		lines := readLines(t, file)
		for _, line := range lines {
			var r Record
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.At.IsZero() {
				t.Fatalf("%v: %s", err, line)
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s rev %d %s %s", r.Actor, r.Action, r.ID, r.Applied, r.Rev, r.Refused, r.Reason)))
		}
		want := []string{
			"ada put x yes rev 1  index rebuild",
			"ada put x no rev 1 invalid_field index rebuild",
			"ada put x no rev 1 stale_rev index rebuild",
			"ada put x no rev 1 invalid_parameter",
			"ada put x no rev 1 malformed_json",
			"ada put x no rev 1 confirmation_required",
			"bob delete /items/x no rev 1 read_only",
			"unauthorized /items/x no rev 1 unauthorized",
			"cross_origin /items/x no rev 1 cross_origin",
			"admin delete nothing yes rev 1",
			"admin mode_on mode yes rev 2  fire",
			"admin mode_off mode yes rev 3  fire",
			"admin force_off x yes rev 3  no",
			"admin end_force_off x yes rev 3",
			"lag put y yes rev 4  test",
			"lag delete y yes rev 5  test",
			"clock ends_soon x yes rev 5  index rebuild",
			"clock expire x yes rev 6  index rebuild",
		}
		if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
			t.Errorf("audited\n%s\nwant\n%s", a, b)
		}
		w := call(p, "GET", "/audit?limit=2", "", as("bob")...)
		var trail struct{ Records []Record }
		if err := json.Unmarshal(w.Body.Bytes(), &trail); err != nil || len(trail.Records) != 2 || trail.Records[0].Action != "expire" || trail.Records[1].Action != "ends_soon" {
			t.Errorf("%v: %s", err, w.Body)
		}
		for _, limit := range []string{"0", "-1", "x", "99999999"} {
			answers(t, call(p, "GET", "/audit?limit="+limit, ""), 422, InvalidParameter)
		}
		answers(t, call(p, "DELETE", "/audit", ""), 405, MethodNotAllowed)
		first := p.Audit(1000)[len(want)-1]
		if first.After == nil || first.After.Ticket != "OPS-7" || first.Before != nil || first.Remote == "" {
			t.Errorf("the first record: %+v", first)
		}
		if bytes.Contains([]byte(strings.Join(lines, "")), []byte(testToken)) {
			t.Error("a token is in the trail")
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	})
}

func readLines(t *testing.T, file string) (lines []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}

// Whoever guesses tokens must not be able to push out of memory what was done.
func TestGuessingDoesNotPushOutWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		put(t, p, "x", entry("x"))
		for range 10_000 {
			knock(p, "Bearer wrong")
			time.Sleep(failEvery)
		}
		records := p.Audit(1000)
		if len(records) > 1+keptFailures+2 { // beside them the end of x and its warning
			t.Errorf("%d records", len(records))
		}
		if last := records[len(records)-1]; last.Action != "put" || last.Actor != "test" {
			t.Errorf("the oldest record is %+v", last)
		}
		for range 2 * keptRecords {
			put(t, p, "x", entry("x"))
		}
		if n := len(p.Audit(100_000)); n != keptRecords+keptFailures {
			t.Errorf("%d records are kept", n)
		}
	})
}

func TestAnAuditFileThatFailsStopsNobody(t *testing.T) {
	dir := t.TempDir()
	if _, err := New(Config{AuditFile: filepath.Join(dir, "none", "audit")}); err == nil || !strings.Contains(err.Error(), "audit file") {
		t.Errorf("a file that cannot be made: %v", err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p := open(t, Config{AuditFile: filepath.Join(folder, "audit")})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	answers(t, call(p, "PUT", "/items/x", body("")), 200, "")
	if s := p.Status(); s.AuditFailures != 1 || len(p.Audit(10)) != 1 {
		t.Errorf("%d failures, %d records", s.AuditFailures, len(p.Audit(10)))
	}
	if err := os.Mkdir(folder, 0o700); err != nil { // moved away by a rotation, and there again
		t.Fatal(err)
	}
	answers(t, call(p, "DELETE", "/items/x", ""), 204, "")
	if lines := readLines(t, filepath.Join(folder, "audit")); len(lines) != 1 {
		t.Errorf("%q", lines)
	}
}

func TestAReadTokenReadsAndWritesNothing(t *testing.T) {
	p := open(t, Config{Tokens: []Token{token(t, "bob", true)}})
	put(t, p, "x", entry("before"))
	before := p.current.Load()
	for _, path := range []string{"/items", "/items/x", "/mode", "/force_off", "/templates", "/audit"} {
		answers(t, call(p, "GET", path, "", as("bob")...), 200, "")
	}
	for _, c := range [][2]string{{"PUT", "/items/x"}, {"DELETE", "/items/x"}, {"PUT", "/mode"}, {"DELETE", "/mode"}, {"PUT", "/force_off/x"}, {"DELETE", "/force_off/x"}, {"POST", "/items"}} {
		answers(t, call(p, c[0], c[1], body(""), as("bob")...), 403, ReadOnly)
	}
	answers(t, call(p, "PUT", "/items/x?dry_run=1", body(""), as("bob")...), 403, ReadOnly)
	if p.current.Load() != before {
		t.Error("something changed")
	}
}

func TestNamesUnderWhichTheAdminEndpointMayBeAsked(t *testing.T) {
	p := open(t, Config{Hosts: []string{"Admin.Internal.example"}})
	for host, ok := range map[string]bool{
		"127.0.0.1:9180": true, "127.0.0.1": true, "[::1]:9180": true, "10.1.2.3:9180": true, "localhost:9180": true, "LOCALHOST": true, "localhost.": true,
		"x.localhost": true, "admin.internal.example": true, "ADMIN.internal.example:9180": true, "admin.internal.example.": true, "": true,
		"evil.example": false, "evil.example:9180": false, "127.0.0.1.evil.example": false, "localhost.evil.example": false, "xlocalhost": false,
		"evil-admin.internal.example": false, "1.2.3.4.5": false, "[::1": true,
	} {
		for _, path := range []string{"/items", "/"} {
			r := httptest.NewRequest("GET", "http://127.0.0.1"+path, nil)
			r.Host = host
			r.Header.Set("Authorization", "Bearer "+testToken)
			w := httptest.NewRecorder()
			p.Admin().ServeHTTP(w, r)
			if ok && w.Code != 200 || !ok && w.Code != 403 {
				t.Errorf("%q: %d %s", host, w.Code, w.Body)
			}
			if !ok {
				answers(t, w, 403, WrongHost)
			}
		}
	}
	if n := len(p.Audit(100)); n < 10 {
		t.Errorf("%d records", n)
	}
	for _, bad := range []string{"", "https://x", "x:1", "*.example", "a b"} {
		if _, err := New(Config{Hosts: []string{bad}}); err == nil {
			t.Errorf("the host %q is accepted", bad)
		}
	}
}

func TestTokensMustBeTellableApart(t *testing.T) {
	ada, bob := token(t, "ada", false), token(t, "bob", false)
	admin := token(t, "admin", false)
	same := bob
	same.Digest = ada.Digest
	for name, c := range map[string]Config{
		"names": {Tokens: []Token{ada, {Name: "ada", Digest: bob.Digest}}}, "digests": {Tokens: []Token{ada, same}},
		"of the sole token": {Token: testToken, Tokens: []Token{admin}}, "no name": {Tokens: []Token{{Digest: ada.Digest}}},
		"no digest": {Tokens: []Token{{Name: "x"}}},
	} {
		if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "pumpkin: Tokens: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewToken("a b", testToken); err == nil {
		t.Error("a name with a space")
	}
	if _, err := NewToken("a", "short"); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("%v", err)
	}
}
