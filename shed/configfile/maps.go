package configfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// entries returns what stands under the names below a key that is a mapping of names, in the order of the file. Names may be used once;
// an empty mapping is a mistake.
func (o object) entries(name, example string, kinds ...kind) (names []string, all []value) {
	v, _, ok := o.at(name, kinds...)
	if !ok {
		return nil, nil
	}
	m, ok := v.node.(ast.MapNode)
	if !ok {
		v.fail("must be a mapping of names", "write "+example)
		return nil, nil
	}
	for key, below := range v.pairs(m) {
		if slices.Contains(names, key) {
			below.fail("is set twice", "keep one of them")
			continue
		}
		names, all = append(names, key), append(all, below)
	}
	if len(names) == 0 {
		v.fail("is empty", "write "+example+v.mend)
	}
	return names, all
}

// named returns the mappings under the names below a key, in the order of the file.
func (o object) named(name string) (names []string, all []object) {
	k, _ := o.shape.key(name)
	keys, values := o.entries(name, name+": "+cmp.Or(k.required, "{NAME: { ... }}"), kindNamed)
	for i, v := range values {
		if !isName(keys[i]) {
			v.fail(shown(keys[i])+" cannot be a name", "use up to 64 letters, digits, dashes and underscores")
			continue
		}
		if s, ok := v.object(k.in); ok {
			names, all = append(names, keys[i]), append(all, s)
		}
	}
	return names, all
}

// textMap returns a mapping of names to texts.
func (o object) textMap(name, example string) map[string]string {
	names, values := o.entries(name, example, kindTextMap)
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
	names, values := o.entries(name, example, kindNumberMap)
	if len(names) == 0 {
		return nil
	}
	k, _ := o.shape.key(name)
	low, high := float64(k.min)/1000, float64(k.max)/1000
	bounds := fmt.Sprintf("%g to %g", low, high)
	use := "a number from " + bounds
	all := make(map[string]float64, len(names))
	for i, v := range values {
		s, ok := v.scalar("a number", use)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(s.text, 64)
		if s.quoted || !decimal.MatchString(s.text) || err != nil || n < low || n > high {
			v.fail(shown(s.text)+" is not a number from "+bounds, "write "+use)
			continue
		}
		all[names[i]] = n
	}
	return all
}
