package configfile

import (
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// entries returns what stands under the names below a key that is a mapping of names to single values, in the order of the
// file. Names may be used once; an empty mapping is a mistake.
func (o object) entries(name, example string) (names []string, all []value) {
	v, _, ok := o.at(name, kindTextMap, kindNumberMap)
	if !ok {
		return nil, nil
	}
	m, ok := v.node.(ast.MapNode)
	if !ok {
		v.fail("must be a mapping of names", "write "+example)
		return nil, nil
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		t := it.Key().GetToken()
		if t == nil || t.Position == nil {
			continue
		}
		below := value{problems: v.problems, node: it.Value(), path: join(v.path, t.Value), line: t.Position.Line}
		if seen[t.Value] {
			below.fail("is set twice", "keep one of them")
			continue
		}
		seen[t.Value] = true
		names, all = append(names, t.Value), append(all, below)
	}
	if len(seen) == 0 {
		v.fail("is empty", "write "+example+v.mend)
	}
	return names, all
}

// textMap returns a mapping of names to texts.
func (o object) textMap(name, example string) map[string]string {
	names, values := o.entries(name, example)
	all := make(map[string]string, len(names))
	for i, v := range values {
		if s, ok := v.text(); ok {
			all[names[i]] = s
		}
	}
	return all
}

// numberMap returns a mapping of names to numbers within the key's bounds.
func (o object) numberMap(name, example string) map[string]float64 {
	names, values := o.entries(name, example)
	if len(names) == 0 {
		return nil
	}
	k, _ := o.shape.key(name)
	low, high := float64(k.min)/1000, float64(k.max)/1000
	use := fmt.Sprintf("write a number from %g to %g", low, high)
	all := make(map[string]float64, len(names))
	for i, v := range values {
		s, ok := v.scalar("a number", use)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(s.text, 64)
		if s.quoted || !decimal.MatchString(s.text) || err != nil || n < low || n > high {
			v.fail(shown(s.text)+" is not a number from "+fmt.Sprintf("%g to %g", low, high), use)
			continue
		}
		all[names[i]] = n
	}
	return all
}
