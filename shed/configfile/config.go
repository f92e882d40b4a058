package configfile

import (
	_ "embed" // for schema.json
	"maps"
	"net/url"
	"slices"

	"github.com/spillway-go/spillway/shed"
)

// Config is what a file says, laid over what the program says. The zero value is a program that says nothing: no routes
// of its own, and the library's default for everything else.
type Config struct {
	// Shed is for shed.New. Store, Features and Observer are the program's: the file has no keys for them.
	Shed shed.Config
	// Store says where balances are kept. OpenStore makes it.
	Store Store
	// Pumpkin is what the file says about the banner and its admin endpoints.
	Pumpkin Pumpkin
	// APIKeysFile is the file that Shed.Clients.APIKeys were read from; empty means none. Parse and Load return it relative to where
	// the program runs.
	APIKeysFile string
	// Upstreams is where requests are forwarded to, by the names of routes, and DefaultUpstream for all others. It is for
	// programs that forward; a program in which it is nil refuses the key.
	Upstreams map[string]*url.URL
	// Unaided says that the file alone says who asks and what requests weigh: the program has no functions for principals, plans and
	// costs, and its handlers count no units of their own. What the file says to such code does nothing then, and is warned about.
	// False means that there may be such code.
	Unaided bool
	// Warnings are what the file says to no effect, one "PATH:LINE:COLUMN: what; how to mend" each. OpenStore logs them.
	Warnings []string

	path   string // of the file, as it was named
	places places
}

// Place returns where the file has a key such as "store.redis.url" or, where it does not, the section around it, as PATH:LINE:COLUMN, to
// stand in front of a message about it.
func (c *Config) Place(key string) string { return located(c.path, c.places.around(key)) }

// Load reads the file at path and lays it over the program's own configuration, as Parse does. When the file cannot be read
// the error is one line that says so.
func Load(path string, program Config) (*Config, error) {
	data, err := read(path)
	if err != nil {
		return nil, Errors{err}
	}
	return Parse(path, data, program)
}

// Parse reads data, the content of the file called name, and lays it over the program's own configuration, section by
// section:
//
//   - limits: the file's, and none if the section is absent.
//   - routes: the file's if the section is there, else the program's. The program's exempt routes hold in any case.
//   - clients, answers, bodies, concurrency, queue, health, store, pumpkin: the file's if the section is there, and then a key that is missing takes
//     the library's default, not the program's; else the program's.
//
// Paths in the file are relative to name's folder. The error is an Errors with every mistake that was found, and then there
// is no configuration at all. The result shares no memory with program.
func Parse(name string, data []byte, program Config) (*Config, error) {
	p := &problems{path: name, places: places{}}
	c := program.clone()
	root := p.document(data)
	if root == nil {
		return nil, p.err()
	}
	o, ok := value{problems: p, node: root, line: start(root)}.object(&fileShape)
	if ok && len(o.fields) == 0 && len(p.found) == 0 {
		o.fail("the file has no sections", "write at least one, such as limits")
	}
	if ok {
		c.read(o, folderOf(name))
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	c.path, c.places = name, p.places
	c.otherFiles(p)
	if c.effects(p); len(p.found) > 0 {
		return nil, p.err()
	}
	c.Warnings = p.warnings()
	return &c, nil
}

// read lays the sections of the file over c.
func (c *Config) read(o object, folder string) {
	if i, ok := o.word("mode"); ok {
		c.Shed.Shadow = modeWords[i] == "shadow"
	}
	if s, ok := o.section("clients"); ok {
		c.Shed.Clients, c.APIKeysFile = clients(s, folder)
	}
	before, routes := len(o.found), &c.Shed.Routes
	if all, there := o.sections("routes"); there {
		c.Shed.Routes = routeList(all, c.Shed.Routes)
		c.Upstreams = upstreams(all, c.Shed.Routes, c.Upstreams)
	}
	if len(o.found) > before {
		routes = nil
	}
	all, _ := o.sections("limits")
	c.Shed.Limits = limitList(all, routes)
	if s, ok := o.section("answers"); ok {
		c.Shed.Answers = answers(s)
	}
	if s, ok := o.section("bodies"); ok {
		c.Shed.Bodies = bodies(s)
	}
	if s, ok := o.section("concurrency"); ok {
		c.Shed.Concurrency = concurrencySection(s)
		c.Shed.Reserve, _ = s.number("reserve")
	}
	if s, ok := o.section("queue"); ok {
		c.Shed.Queue = queue(s)
	}
	if s, ok := o.section("health"); ok {
		c.Shed.Health = healthSection(s, c.Shed.Health)
	}
	if s, ok := o.section("store"); ok {
		c.Store = store(s, folder)
		c.divisible(all)
	}
	if s, ok := o.section("pumpkin"); ok {
		c.Pumpkin = pumpkin(s, folder, c.Shed.Health)
	}
}

// clone copies c with all the slices that may end up in the result.
func (c Config) clone() Config {
	c.Shed.Routes = slices.Clone(c.Shed.Routes)
	c.Upstreams = maps.Clone(c.Upstreams)
	c.Shed.Clients.APIKeys = slices.Clone(c.Shed.Clients.APIKeys)
	c.Shed.Clients.Secret = slices.Clone(c.Shed.Clients.Secret)
	c.Shed.Clients.Identify = slices.Clone(c.Shed.Clients.Identify)
	c.Shed.Clients.TrustedProxies = slices.Clone(c.Shed.Clients.TrustedProxies)
	c.Shed.Clients.ExemptFrom = slices.Clone(c.Shed.Clients.ExemptFrom)
	c.Shed.Health = c.Shed.Health.Clone()
	return c
}

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of the file, for editors. The caller owns the bytes.
func Schema() []byte { return slices.Clone(schema) }
