package shed

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// changes says how b differs from a, one line for each limit, route or key, in the words of the configuration file. Nothing
// in a line is a secret: what is not a number, a word or a rule is only said to have changed.
func changes(a, b Config) []string {
	var all []string
	all = append(all, differences("clients", a.Clients, b.Clients)...)
	all = append(all, named("limit", a.Limits, b.Limits, func(l Limit) string { return l.Name })...)
	all = append(all, named("route", a.Routes, b.Routes, func(r Route) string { return r.Name })...)
	all = append(all, differences("answers", a.Answers, b.Answers)...)
	all = append(all, differences("bodies", a.Bodies, b.Bodies)...)
	all = append(all, differences("concurrency", a.Concurrency, b.Concurrency)...)
	all = append(all, differences("queue", a.Queue, b.Queue)...)
	all = append(all, differences("health", a.Health, b.Health)...)
	if a.Reserve != b.Reserve {
		all = append(all, "concurrency.reserve "+change(reflect.ValueOf(a.Reserve), reflect.ValueOf(b.Reserve)))
	}
	if a.Shadow != b.Shadow {
		all = append(all, "shadow "+change(reflect.ValueOf(a.Shadow), reflect.ValueOf(b.Shadow)))
	}
	return all
}

// named compares two lists whose entries are known by their names.
func named[T any](kind string, a, b []T, name func(T) string) []string {
	var all []string
	for _, was := range a {
		i := slices.IndexFunc(b, func(is T) bool { return name(is) == name(was) })
		if i < 0 {
			all = append(all, kind+" "+name(was)+": removed")
		} else if d := differences("", was, b[i]); len(d) > 0 {
			all = append(all, kind+" "+name(was)+": "+strings.Join(d, ", "))
		}
	}
	for _, is := range b {
		if !slices.ContainsFunc(a, func(was T) bool { return name(was) == name(is) }) {
			all = append(all, kind+" "+name(is)+": added")
		}
	}
	return all
}

// differences lists the fields in which two structs of one type differ, each under its path. Functions are not looked at.
func differences(path string, a, b any) []string {
	return compare(path, reflect.ValueOf(a), reflect.ValueOf(b))
}

func compare(path string, a, b reflect.Value) []string {
	var all []string
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		x, y := a.Field(i), b.Field(i)
		where := spelled(f.Name)
		if path != "" {
			where = path + "." + where
		}
		switch {
		case same(x, y):
		case x.Kind() == reflect.Struct && !printable(x):
			all = append(all, compare(where, x, y)...)
		default:
			all = append(all, where+" "+change(x, y))
		}
	}
	return all
}

// same is reflect.DeepEqual without a look at functions, which are all the same, and at the difference of nil and empty.
func same(x, y reflect.Value) bool {
	switch x.Kind() {
	case reflect.Func:
		return true
	case reflect.Struct:
		if printable(x) {
			break
		}
		for i := range x.NumField() {
			if x.Type().Field(i).IsExported() && !same(x.Field(i), y.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if x.Len() != y.Len() {
			return false
		}
		for i := range x.Len() {
			if !same(x.Index(i), y.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if x.Len() == 0 && y.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(x.Interface(), y.Interface())
}

// printable tells whether a value says best itself what it is: a rule, a network, a duration.
func printable(v reflect.Value) bool {
	_, ok := v.Interface().(fmt.Stringer)
	return ok
}

// change says what was and what is.
func change(x, y reflect.Value) string {
	was, is := shown(x), shown(y)
	if was == "" || is == "" || len(was)+len(is) > 400 {
		return "changed"
	}
	return was + " -> " + is
}

// shown is the value as a person would write it, or "" where that could be anything.
func shown(v reflect.Value) string {
	if v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case printable(v):
		return fmt.Sprint(v.Interface())
	case v.Kind() == reflect.Slice:
		words := make([]string, v.Len())
		for i := range words {
			if words[i] = shown(v.Index(i)); words[i] == "" {
				return ""
			}
		}
		return "[" + strings.Join(words, ", ") + "]"
	case v.Kind() == reflect.String && v.Len() == 0, v.CanInt() && v.Int() == 0, v.CanFloat() && v.Float() == 0:
		return "default"
	case v.Kind() == reflect.String, v.Kind() == reflect.Bool, v.CanInt(), v.CanUint(), v.CanFloat():
		return fmt.Sprint(v.Interface())
	}
	return ""
}

// spelled is the file's spelling of a field's name.
func spelled(name string) string {
	runes := []rune(strings.ReplaceAll(name, "IPv6", "Ipv6"))
	var b strings.Builder
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
