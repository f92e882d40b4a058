package check

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPatternsThatNoRequestMatches(t *testing.T) {
	for pattern, want := range map[string]string{
		"GET /a?b=c":               "without their query",
		"/a?b":                     "without their query",
		"http://shop.example/a":    "without their scheme",
		"GET https://a.example/":   "without their scheme",
		"example.com:8080/a":       "without the port",
		"GET [::1]:80/":            "without the port",
		"*.example.com/a":          "to the letter",
		"^/api$":                   "to the letter",
		"/a/*":                     "to the letter",
		"/a/**":                    "to the letter",
		"/a/(.*)":                  "to the letter",
		"GET /*/b":                 "to the letter",
		"GET /a/:id":               "{id} stands for any",
		"get /a":                   "in capitals",
		"PSOT /a":                  "did you mean POST?",
		"POTS /a":                  "did you mean POST?",
		"GTE /a":                   "did you mean GET?",
		"GETS /a":                  "did you mean GET?",
		"PTCH /a":                  "did you mean PATCH?",
		"DELTE /a":                 "did you mean DELETE?",
		"/a//b":                    "without //",
		"/a/../b":                  "without //",
		"/./b":                     "without //",
		"/a/..":                    "without //",
		"/a#b":                     "behind a #",
		"GET /a ":                  "a space",
		"CONNECT example.com:443/": "",
		"GET [::1]/":               "",
		"GET /a*b/{rest...}":       "",
		"GET /a:b":                 "",
		"GET  /a":                  "",
		"/":                        "",
		"/a/":                      "",
		"/{$}":                     "",
		"PROPFIND /dav/":           "",
		"PURGE /":                  "",
		"MOVE /a":                  "",
		"NOTIFY /a":                "",
		"example.com/":             "",
		"/a..b/...":                "",
	} {
		if why := Pattern(pattern); want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%q: got %q, want %q", pattern, why, want)
		}
	}
	for _, m := range append(common, registered...) {
		if why := Pattern(m + " /"); why != "" {
			t.Errorf("%s: %s", m, why)
		}
	}
	if Method("NOTIFY") || !Method("GET") || !Method("LOCK") {
		t.Error("what is registered")
	}
	if _, yes := Upper("GET /A"); yes {
		t.Error("a path is no host")
	}
	if host, yes := Upper("GET Example.com/A"); !yes || host != "Example.com" {
		t.Error(host, yes)
	}
}

func TestHeadersThatMeanSomethingElse(t *testing.T) {
	for _, c := range []struct{ name, key, address, cost string }{
		{"Host", "connection", "connection", "connection"},
		{"transfer-encoding", "connection", "connection", "connection"},
		{"Cookie", "something else", "something else", ""},
		{"X-Forwarded-For", "from where", "", ""},
		{"X-Forwarded-Proto", "from where", "something else", ""},
		{"Authorization", "", "something else", ""},
		{"Set-Cookie", "", "", "taken away"},
		{"retry-after", "", "", "taken away"},
		{"X-API-Key", "", "", ""},
		{"CF-Connecting-IP", "from where", "", ""},
		{"X-Request-Cost", "", "", ""},
	} {
		for what, got := range map[string][2]string{
			"key": {KeyHeader(c.name), c.key}, "address": {AddressHeader(c.name), c.address}, "cost": {CostHeader(c.name), c.cost},
		} {
			if got[1] == "" && got[0] != "" || !strings.Contains(got[0], got[1]) {
				t.Errorf("%s as %s: got %q, want %q", c.name, what, got[0], got[1])
			}
		}
	}
}

func TestNetworksThatTogetherAreEverybody(t *testing.T) {
	for list, want := range map[string]bool{
		"0.0.0.0/0":                     true,
		"::/0":                          true,
		"0.0.0.0/1":                     true,
		"0.0.0.0/1 ::1/128":             true,
		"128.0.0.0/2":                   true,
		"0.0.0.0/3 32.0.0.0/3":          true,
		"0.0.0.0/3 0.0.0.0/3":           false,
		"0.0.0.0/3 8.0.0.0/5 0.0.0.0/4": false,
		"8.0.0.0/5 0.0.0.0/4 0.0.0.0/3": false,
		"2000::/3":                      true,
		"2000::/4 3000::/4":             true,
		"8000::/1":                      false,
		"2000::/5":                      true,
		"2000::/6":                      false,
		"fc00::/7 fe80::/10":            false,
		"::ffff:0:0/96":                 true,
		"10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fd00::/8": false,
		"10.0.0.0/8 10.0.0.0/8": false,
		"":                      false,
	} {
		var all []netip.Prefix
		for p := range strings.FieldsSeq(list) {
			all = append(all, netip.MustParsePrefix(p))
		}
		if got := Everybody(all); got != want {
			t.Errorf("%s: %v", list, got)
		}
	}
	if Everybody([]netip.Prefix{{}}) {
		t.Error("what is no network is nobody")
	}
}
