package configfile

import (
	"net/url"
	"strings"
	"testing"
)

// forwarding is a program that sends requests on, so that its file may say where to.
func forwarding() Config { return Config{Upstreams: map[string]*url.URL{}} }

func TestRoutesSayWhereTheirRequestsGo(t *testing.T) {
	own := forwarding()
	fallback := &url.URL{Scheme: "http", Host: "main.internal"}
	own.Upstreams[DefaultUpstream] = fallback
	own.Upstreams["old"] = fallback
	c := parsed(t, `routes: [{name: a, match: /a, upstream: "http://[::1]:9000"}, {name: b, match: /b}]`, own)
	if len(c.Upstreams) != 2 || c.Upstreams["a"].Host != "[::1]:9000" || c.Upstreams[DefaultUpstream] != fallback {
		t.Errorf("%v", c.Upstreams)
	}
	if c := parsed(t, "queue: {}", own); len(c.Upstreams) != 2 { // without routes the program's
		t.Errorf("%v", c.Upstreams)
	}
	if c := parsed(t, "routes: [{name: a, match: /a}]", Config{}); c.Upstreams != nil {
		t.Errorf("a program that forwards nothing has upstreams: %v", c.Upstreams)
	}
}

func TestWhatIsNoUpstreamIsRefused(t *testing.T) {
	for text, why := range map[string]string{
		"ftp://host":          "begin with http",
		"127.0.0.1:9000":      "no URL",
		"localhost:9000":      "begin with http",
		"http://":             "no host",
		"http://:80":          "no host",
		"http://user:pw@host": "do not belong",
		"http://host/?a=b":    "a query",
		"http://host#x":       "a fragment",
		"http://a b":          "no URL",
		"/path":               "begin with http",
		"http://host:":        "no port",
		"http://host:0":       "ports go from",
		"http://host:99999/x": "ports go from",
	} {
		_, err := Parse("f", []byte("routes:\n  - {name: a, match: /a, upstream: \""+text+"\"}"), forwarding())
		if err == nil || !strings.Contains(err.Error(), why) || !strings.HasPrefix(err.Error(), "f:2: routes[0].upstream: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
