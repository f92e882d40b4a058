package configfile

import (
	"net"
	"path/filepath"
	"strconv"
	"time"
)

// DefaultAdminListen is where the pumpkin's admin endpoints listen when the section pumpkin does not say.
const DefaultAdminListen = "127.0.0.1:9180"

// Pumpkin is what the file says about the banner. Its zero value is the library's default.
type Pumpkin struct {
	// PollAfter is how long clients wait between two polls, in whole seconds; zero means the pumpkin's own default.
	PollAfter time.Duration
	// AdminListen is the address of the admin endpoints' own listener. Parse and Load set it to DefaultAdminListen when
	// the file has a section pumpkin without it.
	AdminListen string
	// TokenFile is the file that holds the admin token; empty means none. Parse and Load return it relative to where the
	// program runs: the file names it relative to its own folder.
	TokenFile string
	// TokenFileLine is the line that names it, for a message about it; 0 when no file does.
	TokenFileLine int
}

var pumpkinShape = shape{
	keys: []key{
		{name: "poll_after", kind: kindDuration, min: int64(5 * time.Second), max: int64(600 * time.Second)},
		{name: "admin", kind: kindSection, in: &adminShape},
	},
	later: map[string]string{
		"auto":      "remove it, and switch features through the admin endpoints",
		"templates": "remove it, and send the texts with each item",
		"file":      "remove it, and use the admin endpoints",
		"redis":     "remove it: each instance has its own banner",
	},
}

var adminShape = shape{keys: []key{
	{name: "listen", kind: kindText},
	{name: "token_file", kind: kindText},
}}

// pumpkin reads the section pumpkin of a file in folder.
func pumpkin(o object, folder string) Pumpkin {
	p := Pumpkin{PollAfter: o.duration("poll_after"), AdminListen: DefaultAdminListen}
	if p.PollAfter%time.Second != 0 {
		o.fields["poll_after"].fail(p.PollAfter.String()+" is not whole seconds",
			"clients are told seconds: use "+p.PollAfter.Round(time.Second).String())
	}
	admin, ok := o.section("admin")
	if !ok {
		return p
	}
	if s := admin.text("listen"); s != "" {
		p.AdminListen = s
		host, port, err := net.SplitHostPort(s)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strconv.FormatUint(n, 10) != port || hasSpace(host) {
			admin.fields["listen"].fail(shown(s)+" is not an address to listen on", "write HOST:PORT, such as "+DefaultAdminListen)
		}
	}
	if s := admin.text("token_file"); s != "" {
		p.TokenFile, p.TokenFileLine = s, admin.fields["token_file"].line
		if !filepath.IsAbs(s) {
			p.TokenFile = filepath.Join(folder, s)
		}
	}
	return p
}

func hasSpace(s string) bool {
	for _, r := range s {
		if r <= ' ' || r == '/' {
			return true
		}
	}
	return false
}
