package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// listed is a file of API keys: keys "NAME-1" to "NAME-n" of each holder.
func listed(t *testing.T, keys int, holders ...string) string {
	t.Helper()
	var text strings.Builder
	for _, holder := range holders {
		for i := range keys {
			fmt.Fprintf(&text, "- {name: %s, digest: \"%s\"}\n", holder, shed.DigestKey(fmt.Sprintf("%s-%d", holder, i), ""))
		}
	}
	path := filepath.Join(t.TempDir(), "keys.yaml")
	writeFile(t, path, text.String())
	return path
}

// Whatever one balance counts is counted by one gateway, by whichever key, address and gateway it comes.
func TestOneBalanceIsOneQuotaOfTheFleet(t *testing.T) {
	const bucket = "token_bucket: {capacity: 5, refill: 1/day}"
	trust := "trusted_proxies: [127.0.0.0/8]"
	keys := listed(t, 6, "alice", "bob", "carol")
	for name, row := range map[string]struct {
		clients, limits string
		ask             func(i int) (key, address string)
		want            int
	}{
		"a holder of six keys": {
			"api_keys_file: " + keys, "{name: a, per: client, " + bucket + "}",
			func(i int) (string, string) { return fmt.Sprintf("alice-%d", i%6), "198.51.100.1" }, 5,
		},
		"a holder at many addresses": {
			"api_keys_file: " + keys, "{name: a, per: client, " + bucket + "}, {name: b, per: ip, for: [ip], " + bucket + "}",
			func(i int) (string, string) { return fmt.Sprintf("alice-%d", i%6), fmt.Sprintf("198.51.100.%d", i) }, 5,
		},
		"three holders and nobody at one address": {
			"api_keys_file: " + keys, "{name: a, per: ip, " + bucket + "}",
			func(i int) (string, string) {
				return []string{"alice-1", "bob-1", "carol-1", ""}[i%4], "198.51.100.1"
			}, 5,
		},
		"labels at one address": {
			"", "{name: a, per: ip, " + bucket + "}",
			func(i int) (string, string) { return fmt.Sprint(i), "198.51.100.1" }, 5,
		},
		"a network": {
			"", "{name: a, per: ip_prefix, " + bucket + "}, {name: b, per: ip, " + bucket + "}",
			func(i int) (string, string) { return "", fmt.Sprintf("198.51.100.%d", i) }, 5,
		},
		"a network of IPv6": {
			"", "{name: a, per: ip_prefix, " + bucket + "}",
			func(i int) (string, string) { return "", fmt.Sprintf("2001:db8:1:%x::1", i) }, 5,
		},
		"nobody, by the address": {
			"identify: [api_key], unknown: shared", "{name: a, per: ip, " + bucket + "}",
			func(int) (string, string) { return "", "198.51.100.1" }, 5,
		},
		"all that are nobody": {
			"identify: [api_key], unknown: shared", "{name: a, per: client, " + bucket + "}",
			func(i int) (string, string) { return "", fmt.Sprintf("198.51.100.%d", i) }, 5,
		},
		"the control: sixty clients": {
			"", "{name: a, per: client, " + bucket + "}",
			func(i int) (string, string) { return fmt.Sprint(i), "198.51.100.1" }, 60,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clients := trust
			if row.clients != "" {
				clients += ", " + row.clients
			}
			all := fleet(t, 3, "clients: {"+clients+"}\nlimits: ["+row.limits+"]\n")
			passed := 0
			for i := range 60 {
				key, address := row.ask(i)
				fields := []string{"X-Forwarded-For", address}
				if key != "" {
					fields = append(fields, "X-API-Key", key)
				}
				if res, _ := get(t, all[i%3].url("proxy", "/"), fields...); res.StatusCode == http.StatusOK {
					passed++
				}
			}
			if passed != row.want {
				t.Errorf("%d passed, want %d", passed, row.want)
			}
		})
	}
}

// Where rules by address and by client meet, one of them is no single quota: that is said, and once.
func TestWhatIsNoSingleQuotaIsSaid(t *testing.T) {
	const bucket = ", token_bucket: {capacity: 5, refill: 1/day}}"
	for name, row := range map[string]struct {
		text string
		said bool
	}{
		"both for all":                 {"limits: [{name: a, per: ip" + bucket + ", {name: b, per: client" + bucket + "]", true},
		"both, of networks":            {"limits: [{name: a, per: ip_prefix" + bucket + ", {name: b, per: client_route" + bucket + "]", true},
		"addresses for who has no key": {"limits: [{name: a, per: ip, for: [ip]" + bucket + ", {name: b, per: client" + bucket + "]", false},
		"clients for who has no key":   {"limits: [{name: a, per: ip" + bucket + ", {name: b, per: client, for: [ip]" + bucket + "]", false},
		"no keys":                      {"clients: {identify: [ip]}\nlimits: [{name: a, per: ip" + bucket + ", {name: b, per: client" + bucket + "]", false},
		"only clients":                 {"limits: [{name: b, per: client" + bucket + "]", false},
		"only addresses":               {"limits: [{name: a, per: ip" + bucket + ", {name: b, per: global" + bucket + "]", false},
	} {
		path := written(t, row.text+"\n")
		var out, errs bytes.Buffer
		args := []string{"-config", path, "-check", "-peers", "http://127.0.0.1:1,http://127.0.0.1:2", "-self", "http://127.0.0.1:1"}
		if code := run(context.Background(), args, &out, &errs); code != exitOK {
			t.Fatalf("%s: %d %s", name, code, errs.String())
		}
		if said := strings.Contains(errs.String(), `limit "a" counts by address`); said != row.said {
			t.Errorf("%s: -check says %q", name, errs.String())
		}
		errs.Reset()
		g := opened(t, func(o *options) { o.config, o.upstream = path, "http://127.0.0.1:1" })
		p := &peers{log: slog.New(slog.NewTextHandler(&errs, nil))}
		if err := g.shedder.Follow(p.follow); err != nil {
			t.Fatal(err)
		}
		if _, err := g.shedder.Reload(g.config.Shed); err != nil { // says nothing new
			t.Fatal(err)
		}
		if said := strings.Count(errs.String(), "counts by address"); said > 1 || (said == 1) != row.said {
			t.Errorf("%s: the log says %q", name, errs.String())
		}
	}
}

func TestWhatAClientIsPinnedBy(t *testing.T) {
	v4, v6 := netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8:1:2::")
	whole := pins{ipv4: 32, ipv6: 128}
	for name, row := range map[string]struct {
		pins   pins
		caller middleware.Caller
		header string
		want   string
	}{
		"nobody":                  {whole, middleware.Caller{IP: v4}, "", ""},
		"an address":              {whole, middleware.Caller{Client: "ip:x", By: "ip", IP: v4}, "", "ip:198.51.100.7"},
		"an address of IPv6":      {whole, middleware.Caller{Client: "ip:x", By: "ip", IP: v6}, "", "ip:2001:db8:1:2::"},
		"a network":               {pins{ipv4: 24, ipv6: 48}, middleware.Caller{Client: "ip:x", By: "ip", IP: v4}, "", "ip:198.51.100.0"},
		"a network of IPv6":       {pins{ipv4: 24, ipv6: 48}, middleware.Caller{Client: "ip:x", By: "ip", IP: v6}, "", "ip:2001:db8:1::"},
		"a label":                 {whole, middleware.Caller{Client: "key:x", By: "api_key", IP: v4}, "", "key:standard"},
		"a label elsewhere":       {whole, middleware.Caller{Client: "key:x", By: "api_key", IP: v4}, "X-Other", "key:other"},
		"a holder":                {pins{listed: true, ipv4: 32}, middleware.Caller{Client: "api_key:alice", By: "api_key", IP: v4}, "", "client:api_key:alice"},
		"a holder by the address": {pins{listed: true, ipv4: 32, byAddress: map[string]bool{"api_key": true}}, middleware.Caller{Client: "api_key:alice", By: "api_key", IP: v4}, "", "ip:198.51.100.7"},
		"a label of a socket":     {pins{byAddress: map[string]bool{"api_key": true}}, middleware.Caller{Client: "key:x", By: "api_key"}, "", "key:standard"},
		"all that are nobody":     {whole, middleware.Caller{Client: "unknown"}, "", "client:unknown"},
	} {
		r := &http.Request{Header: http.Header{"X-Api-Key": {"standard"}, "X-Other": {"other"}}}
		if got := row.pins.of(r, row.caller, row.header); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
