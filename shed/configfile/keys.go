package configfile

import (
	"bytes"
	"path/filepath"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/spillway-go/spillway/shed"
)

// keyListShape is the shape of a file of API keys that is a mapping; it can also be the list alone.
var keyListShape = shape{keys: []key{
	{name: "keys", kind: kindSections, in: &apiKeyShape, max: maxAPIKeys, required: "[...]"},
}}

var apiKeyShape = shape{keys: []key{
	{name: "name", kind: kindText, required: "alice"},
	{name: "digest", kind: kindText, required: "sha256:..."},
	{name: "plan", kind: kindText},
}}

// maxAPIKeys is what fits into a file: more keys want a database, which the program's Principal function can ask.
const maxAPIKeys = 10_000

// howDigest is the way out for what is no digest.
const howDigest = "write sha256: and what printf %s KEY | sha256sum says"

// apiKeys reads the file of API keys that the key name tells. It is nil if there is none.
func (o object) apiKeys(name, folder string) (path string, keys []shed.APIKey) {
	path = o.text(name)
	if path == "" {
		return "", nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	at := o.fields[name]
	data, err := read(path)
	if err != nil {
		at.fail(shown(path)+": "+err.What, err.Mend)
		return path, nil
	}
	p := &problems{path: path}
	keys = p.apiKeys(data)
	o.problems.found = append(o.problems.found, p.found...)
	return path, keys
}

// apiKeys reads the content of a file of API keys. No message repeats a digest, for it may be a key in the wrong place.
func (p *problems) apiKeys(data []byte) []shed.APIKey {
	if len(bytes.TrimSpace(data)) == 0 {
		p.add(1, "the file is empty", "list the keys, or write [] for none")
		return nil
	}
	root := p.document(data)
	if root == nil {
		return nil
	}
	v := value{problems: p, node: root, line: start(root)}
	var all []object
	if _, list := root.(*ast.SequenceNode); list {
		items, _ := v.list()
		if len(items) > maxAPIKeys {
			v.fail("there are more than 10000 keys", "ask a database in the program's Principal function")
			return nil
		}
		for _, item := range items {
			if o, ok := item.object(&apiKeyShape); ok {
				all = append(all, o)
			}
		}
	} else if o, ok := v.object(&keyListShape); ok {
		all, _ = o.sections("keys")
	}
	return keyList(all)
}

func keyList(all []object) []shed.APIKey {
	keys := []shed.APIKey{} // not nil: a list of no keys knows no key
	holders, plans := map[shed.KeyDigest]int{}, map[string]string{}
	for _, o := range all {
		k := shed.APIKey{Name: o.name("name"), Plan: o.name("plan")}
		if v, _, there := o.at("digest", kindText); there {
			s, ok := v.scalar("text", "sha256:...")
			if !ok {
				continue
			}
			digest, err := shed.ParseKeyDigest(s.text)
			if err != nil {
				o.fields["digest"].fail("is no digest: "+err.Error(), howDigest)
				continue
			}
			k.Digest = digest
			if line, twice := holders[digest]; twice {
				o.fields["digest"].fail("is the digest of the key in line "+strconv.Itoa(line)+" too", "give each client a key of its own")
				continue
			}
			holders[digest] = o.fields["digest"].line
		}
		if plan, known := plans[k.Name]; k.Name != "" && known && plan != k.Plan {
			o.fields["name"].fail("has a key with another plan", "give all keys of a client the same plan")
		}
		plans[k.Name] = k.Plan
		keys = append(keys, k)
	}
	return keys
}
