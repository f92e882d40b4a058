package pumpkin

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/testlog"
)

// TestAFeatureThatNoRouteHasIsWarnedAbout: a slip of the pen is accepted, for pages may know the feature, but it is said.
func TestAFeatureThatNoRouteHasIsWarnedAbout(t *testing.T) {
	for _, c := range []struct {
		what    string
		known   [][]string
		feature string
		warns   string
	}{
		{"nobody has said what there is", nil, "rebbports", ""},
		{"a slip", [][]string{{"reports", "orders"}}, "rebbports", "the feature rebbports, so that only pages and clients that ask for it heed it; routes have orders, reports"},
		{"a feature of a route", [][]string{{"reports"}}, "reports", ""},
		{"one of a route that came with a reload", [][]string{{"orders"}, {"reports"}}, "reports", ""},
		{"no route has any", [][]string{nil}, "reports", "no route has a feature"},
	} {
		log := new(testlog.Log)
		p := open(t, Config{Logger: log.Logger()})
		for _, names := range c.known {
			p.KnowFeatures(names)
		}
		r := httptest.NewRequest("PUT", "http://127.0.0.1/items/x", strings.NewReader(`{"severity":"minor","message":{"en":"x"},"features":{"`+c.feature+`":{"off":1}},"reason":"test"}`))
		r.Header.Set("Authorization", "Bearer "+testToken)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		p.Admin().ServeHTTP(w, r)
		var answer struct{ Warning string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 {
			t.Fatalf("%s: %d %s", c.what, w.Code, w.Body)
		}
		if !strings.Contains(answer.Warning, c.warns) || (answer.Warning == "") != (c.warns == "") {
			t.Errorf("%s: the answer warns %q, want %q", c.what, answer.Warning, c.warns)
		}
		if warned := strings.Contains(log.String(), "level=WARN"); warned != (c.warns != "") {
			t.Errorf("%s: the log is\n%s", c.what, log)
		}
	}
}

// TestAnAdminEndpointThatNobodyCanUseSaysSo: an unset variable must not look like a wrong token later.
func TestAnAdminEndpointThatNobodyCanUseSaysSo(t *testing.T) {
	for _, token := range []string{"", testToken} {
		log := new(testlog.Log)
		p, err := New(Config{Token: token, Logger: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log.String(), "WARN") {
			t.Errorf("a pumpkin without an admin endpoint warns: %s", log)
		}
		p.Admin()
		p.Admin()
		if n := strings.Count(log.String(), TokenEnv); (n == 1) != (token == "") || n > 1 {
			t.Errorf("with the token %q it says\n%s", token, log)
		}
		p.Close()
	}
}
