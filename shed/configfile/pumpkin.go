package configfile

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/health"
	banner "github.com/spillway-go/spillway/pumpkin" // the reader of the section is called pumpkin
)

// DefaultAdminListen is where the pumpkin's admin endpoints listen when the section pumpkin does not say.
const DefaultAdminListen = "127.0.0.1:9180"

// Pumpkin is what the file says about the banner. Its zero value is the library's default.
type Pumpkin struct {
	// PollAfter is how long clients wait between two polls, in whole seconds; zero means the pumpkin's own default.
	PollAfter time.Duration
	// PollIdle is the same while all is well; zero means the pumpkin's own default.
	PollIdle time.Duration
	// DefaultLang is the language that every message must have; empty means the pumpkin's own default.
	DefaultLang string
	// Templates are the prepared texts by name; nil means only those that are built in.
	Templates map[string]banner.Entry
	// File is the break-glass file; empty means none.
	File string
	// AdminListen is the address of the admin endpoints' own listener. Parse and Load set it to DefaultAdminListen when
	// the file has a section pumpkin without it.
	AdminListen string
	// TokenFile is the file that holds the admin tokens; empty means none. Parse and Load return it, as all paths, relative
	// to where the program runs: the file names it relative to its own folder.
	TokenFile string
	// AdminHosts are the names under which the admin endpoints may be asked, beside localhost and addresses.
	AdminHosts []string
	// Auto are the rules by which items are raised and lowered; RunPumpkin follows them. Nil means by people only.
	Auto []banner.AutoRule
	// Redis is where instances share the banner; RunPumpkin joins it.
	Redis PumpkinRedis
	// AuditFile is what everything that is done is appended to; empty means none.
	AuditFile string
}

// Config returns the configuration of a pumpkin that the file describes. The caller adds tokens and a logger.
func (p Pumpkin) Config() banner.Config {
	return banner.Config{
		PollAfter: p.PollAfter, PollIdle: p.PollIdle, DefaultLang: p.DefaultLang, Hosts: p.AdminHosts, Templates: p.Templates,
		AuditFile: p.AuditFile, File: p.File,
	}
}

var pumpkinShape = shape{
	keys: []key{
		{name: "poll_after", kind: kindDuration, min: int64(5 * time.Second), max: int64(600 * time.Second)},
		{name: "poll_idle", kind: kindDuration, min: int64(5 * time.Second), max: int64(600 * time.Second)},
		{name: "default_lang", kind: kindText},
		{name: "templates", kind: kindNamed, in: &templateShape},
		{name: "file", kind: kindText},
		{name: "auto", kind: kindSections, in: &autoShape, max: maxAuto},
		{name: "redis", kind: kindSection, in: &pumpkinRedisShape},
		{name: "admin", kind: kindSection, in: &adminShape},
	},
}

var adminShape = shape{keys: []key{
	{name: "listen", kind: kindText},
	{name: "token_file", kind: kindText},
	{name: "hosts", kind: kindTexts},
	{name: "audit_file", kind: kindText},
}}

// severities are in the order of the library's documentation.
var severities = []banner.Severity{banner.Minor, banner.Major, banner.Critical, banner.Maintenance}

var templateShape = shape{keys: []key{
	{name: "severity", kind: kindWord, words: []string{"minor", "major", "critical", "maintenance"}, required: "major"},
	{name: "message", kind: kindTextMap, required: `{en: "What people read"}`},
	{name: "url", kind: kindText},
	{name: "link_text", kind: kindText},
	{name: "dismissible", kind: kindBoolean},
	{name: "recover_spread", kind: kindInteger, max: 3600},
	{name: "features", kind: kindNumberMap, max: 1000},
	{name: "ttl", kind: kindDuration, min: int64(time.Second), max: int64(24 * time.Hour)},
}}

// pumpkin reads the section pumpkin of a file in folder, for a program with this health.
func pumpkin(o object, folder string, program health.Config) Pumpkin {
	p := Pumpkin{
		PollAfter: o.seconds("poll_after"), PollIdle: o.seconds("poll_idle"), DefaultLang: o.text("default_lang"), File: o.file("file", folder),
		AdminListen: DefaultAdminListen,
	}
	if after := cmp.Or(p.PollAfter, banner.DefaultPollAfter); p.PollIdle > 0 && p.PollIdle < after {
		o.fields["poll_idle"].fail(fmt.Sprintf("%v is shorter than poll_after, %v", p.PollIdle, after), "make it at least as long, or lower poll_after")
		p.PollIdle = 0
	}
	if p.DefaultLang != "" && !banner.IsLanguage(p.DefaultLang) {
		o.fields["default_lang"].fail(shown(p.DefaultLang)+" is not a language tag", `use one such as "en" or "pt-BR"`)
		p.DefaultLang = ""
	}
	before := len(o.found)
	p.Templates = o.templates("templates", cmp.Or(p.DefaultLang, "en"))
	if len(o.found) == before { // else rules would be found to lack what is only wrong
		p.Auto = o.auto(p.Config(), signalNames(program))
	}
	p.Redis = o.bannerRedis(folder)
	admin, ok := o.section("admin")
	if !ok {
		return p
	}
	if s := admin.text("listen"); s != "" {
		p.AdminListen = admin.listen(s, folder)
	}
	p.TokenFile = admin.file("token_file", folder)
	p.AuditFile = admin.file("audit_file", folder)
	for _, v := range admin.texts("hosts") {
		host, ok := v.text()
		if ok && strings.ContainsAny(host, ":/* ") {
			v.fail(shown(host)+" is not a host name", "write the name alone, without scheme, port and wildcard")
			continue
		}
		if ok {
			p.AdminHosts = append(p.AdminHosts, host)
		}
	}
	return p
}

// seconds returns a duration that clients are told in whole seconds.
func (o object) seconds(name string) time.Duration {
	d := o.duration(name)
	if d%time.Second != 0 {
		o.fields[name].fail(d.String()+" is not whole seconds", "clients are told seconds: use "+d.Round(time.Second).String())
	}
	return d
}

// file returns a path under a key, which the file gives relative to its own folder.
func (o object) file(name, folder string) string {
	s := o.text(name)
	if s == "" || filepath.IsAbs(s) {
		return s
	}
	return filepath.Join(folder, s)
}

// listen checks the admin address.
func (o object) listen(s, folder string) string {
	if path, unix := strings.CutPrefix(s, "unix:"); unix {
		if path == "" {
			o.fields["listen"].fail("unix: without a path", "write unix:PATH")
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		return "unix:" + path
	}
	host, port, err := net.SplitHostPort(s)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strconv.FormatUint(n, 10) != port || hasSpace(host) {
		o.fields["listen"].fail(shown(s)+" is not an address to listen on", "write HOST:PORT, such as "+DefaultAdminListen)
	}
	return s
}

// templates reads prepared texts. What would be refused in an emergency is refused here.
func (o object) templates(name, lang string) map[string]banner.Entry {
	names, all := o.named(name)
	if len(names) == 0 {
		return nil
	}
	templates := make(map[string]banner.Entry, len(names))
	for i, t := range all {
		before := len(t.found)
		e := banner.Entry{
			Message: t.textMap("message", `{en: "What people read"}`), URL: t.text("url"), LinkText: t.text("link_text"),
			Sticky: t.has("dismissible") && !t.boolean("dismissible"), TTL: t.duration("ttl"),
		}
		if severity, ok := t.word("severity"); ok {
			e.Severity = severities[severity]
		}
		if t.has("recover_spread") {
			spread, _ := t.integer("recover_spread")
			e.RecoverSpread = int(spread)
		}
		for feature, share := range t.numberMap("features", "{search: 1}") {
			if e.Features == nil {
				e.Features = map[string]banner.Feature{}
			}
			e.Features[feature] = banner.Feature{Off: share}
		}
		if len(t.found) != before || !t.has("severity") || !t.has("message") {
			continue // said already
		}
		if err := banner.CheckTemplate(names[i], e, lang); err != nil {
			t.fail(err.Detail, "mend it, for it would be refused when it is needed")
			continue
		}
		templates[names[i]] = e
	}
	return templates
}

func hasSpace(s string) bool {
	for _, r := range s {
		if r <= ' ' || r == '/' {
			return true
		}
	}
	return false
}
