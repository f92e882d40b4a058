package configfile

import (
	"fmt"
	"iter"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// value is a piece of the file that knows where it stands: the key's path for people, the line for editors.
type value struct {
	*problems
	line int
	node ast.Node
	path string
	// mend is what to do when nothing stands here: for a key that may be missing, to remove it.
	mend string
}

// fail reports that this value is wrong.
func (v value) fail(what, mend string) {
	if v.path != "" {
		what = v.path + ": " + what
	}
	v.add(v.line, what, mend)
}

// warn reports that this value can hardly mean what it says.
func (v value) warn(what, mend string) {
	v.warned = append(v.warned, &Error{Path: v.problems.path, Line: v.line, What: v.path + ": " + what, Mend: mend})
}

// object is a mapping whose keys have been checked against its shape.
type object struct {
	value
	shape  *shape
	fields map[string]value
	absent map[string]bool // the keys that are there but have been refused, for they are misspelled
	bytes  bool            // rates may count bytes
}

// object reads v as a mapping. Keys that are unknown, twice there or not available are reported and left out. It is false
// when v is no mapping at all, which it then reports.
func (v value) object(s *shape) (object, bool) {
	o := object{value: v, shape: s, fields: map[string]value{}, absent: map[string]bool{}}
	m, ok := v.node.(ast.MapNode)
	if !ok {
		if isNull(v.node) {
			v.fail("is empty", "give it keys"+v.mend)
		} else {
			v.fail("must be a mapping of keys", "use "+either(s.names()))
		}
		return o, false
	}
	seen := map[string]int{} // the lines of the keys, also of those that were meant by a misspelled one
	for name, f := range v.pairs(m) {
		f.mend = orRemove
		if first, twice := seen[name]; twice {
			f.fail(fmt.Sprintf("is set twice, first in line %d", first), "keep one of them")
			continue
		}
		seen[name] = f.line
		k, known := s.key(name)
		if !known {
			meant := suggestion(name, s.names())
			seen[meant], o.absent[meant] = f.line, true
			f.fail("unknown key", didYouMean(name, s.names()))
			continue
		}
		if k.required != "" {
			f.mend = ""
		}
		o.fields[name] = f
	}
	for _, k := range s.keys {
		if _, there := seen[k.name]; k.required != "" && !there {
			missing := v
			missing.path = join(v.path, k.name)
			missing.fail("is missing", "add "+k.name+": "+k.required)
		}
	}
	return o, true
}

// pairs are the keys of a mapping and what stands under them, in the order of the file.
func (v value) pairs(m ast.MapNode) iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		for it := m.MapRange(); it.Next(); {
			t := it.Key().GetToken()
			if t == nil || t.Position == nil {
				continue
			}
			below := value{problems: v.problems, node: it.Value(), path: join(v.path, t.Value), line: lineOf(t)}
			if v.places != nil {
				v.places[below.path] = below.line
			}
			if !yield(t.Value, below) {
				return
			}
		}
	}
}

// orRemove completes the way out for a key that may be missing.
const orRemove = ", or remove it to keep the default"

func join(path, name string) string {
	if path == "" {
		return bare(name)
	}
	return path + "." + bare(name)
}

// at returns the value of a key, if it is there. The key must be of the shape and of the kind that the caller reads.
func (o object) at(name string, kinds ...kind) (value, key, bool) {
	k, known := o.shape.key(name)
	if !known || !slices.Contains(kinds, k.kind) {
		return value{}, k, false
	}
	v, there := o.fields[name]
	return v, k, there
}

// has tells whether a key is there, rightly written or not.
func (o object) has(name string) bool {
	_, there := o.fields[name]
	return there
}

// section returns the mapping under a key, if it is there and is one.
func (o object) section(name string) (object, bool) {
	v, k, ok := o.at(name, kindSection)
	if !ok {
		return object{}, false
	}
	return v.object(k.in)
}

// sections returns the mappings in the list under a key; there tells whether the key is in the file.
func (o object) sections(name string) (all []object, there bool) {
	v, k, ok := o.at(name, kindSections)
	if !ok {
		return nil, false
	}
	v.mend = ", or write [] for none"
	items, _ := v.list()
	if int64(len(items)) > k.max {
		v.fail(fmt.Sprintf("has %d entries, at most %d are allowed", len(items), k.max), "merge some of them")
		return nil, true
	}
	for _, item := range items {
		if s, ok := item.object(k.in); ok {
			all = append(all, s)
		}
	}
	return all, true
}

// list reads v as a list.
func (v value) list() ([]value, bool) {
	s, ok := v.node.(*ast.SequenceNode)
	if !ok {
		if isNull(v.node) {
			v.fail("is empty", "give it entries"+v.mend)
		} else {
			v.fail("must be a list", "write [ ... ], or begin each entry with a dash")
		}
		return nil, false
	}
	items := make([]value, 0, len(s.Values))
	for i, n := range s.Values {
		item := value{problems: v.problems, node: n, path: fmt.Sprintf("%s[%d]", v.path, i), line: v.line}
		if at := beginning(n); at > 0 {
			item.line = at
		}
		items = append(items, item)
	}
	return items, true
}

// beginning returns where a list's entry begins, or zero. A mapping's own token may be the colon after its first key, or missing.
func beginning(n ast.Node) int {
	if m, ok := n.(ast.MapNode); ok {
		if it := m.MapRange(); it.Next() {
			n = it.Key()
		}
	}
	if n == nil {
		return 0
	}
	return lineOf(n.GetToken())
}

// start is beginning for the whole of a file.
func start(root ast.Node) int {
	at := beginning(root)
	at = max(at, 1)
	return at
}

// lineOf returns the line of a word of the file, or zero.
func lineOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return n == nil || null
}

// scalar is one word of the file as it stands there.
type scalar struct {
	text   string
	quoted bool // it was in quotes or a block, so it is a string whatever it looks like
	str    bool // YAML reads it as a string
}

// scalar reads v as a single value. It is false when v is none, which it then reports, naming what was wanted.
func (v value) scalar(wanted, example string) (scalar, bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		quoted := n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
		return scalar{text: n.Value, quoted: quoted, str: true}, true
	case *ast.LiteralNode:
		if n.Value != nil {
			return scalar{text: n.Value.Value, quoted: true, str: true}, true
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return scalar{text: n.GetToken().Value}, true
	}
	if isNull(v.node) {
		v.fail("is empty", "write "+example+v.mend)
	} else {
		v.fail("must be "+wanted, "write "+example)
	}
	return scalar{}, false
}
