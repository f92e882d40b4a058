package shed

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spillway-go/spillway/limits"
)

// changes says how b differs from a, one line for each limit, route or key, in the words of the configuration file. Nothing
// in a line is a secret: what is not a number, a word or a rule is only said to have changed. Where a field that is left zero means a
// value, that is what is shown, and a file that writes it out changes nothing.
func changes(a, b Config) []string {
	a, b = effective(a), effective(b)
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
		all = append(all, "concurrency.reserve "+change("reserve", reflect.ValueOf(a.Reserve), reflect.ValueOf(b.Reserve)))
	}
	if a.Shadow != b.Shadow {
		all = append(all, "shadow "+change("shadow", reflect.ValueOf(a.Shadow), reflect.ValueOf(b.Shadow)))
	}
	return all
}

// effective returns c with what holds in place of the zeros that mean it.
func effective(c Config) Config {
	c.Clients.APIKeyHeader = cmp.Or(c.Clients.APIKeyHeader, "X-API-Key")
	c.Clients.Forwarded = cmp.Or(c.Clients.Forwarded, "x_forwarded_for")
	c.Clients.IPv6Prefix = cmp.Or(c.Clients.IPv6Prefix, 64)
	c.Clients.Unknown = cmp.Or(c.Clients.Unknown, "refuse")
	c.Bodies = c.Bodies.WithDefaults()
	c.Queue.MaxWait = cmp.Or(c.Queue.MaxWait, DefaultQueueMaxWait)
	c.Limits, c.Routes = slices.Clone(c.Limits), slices.Clone(c.Routes)
	for i := range c.Limits {
		c.Limits[i].Unit = cmp.Or(c.Limits[i].Unit, Requests)
		if c.Limits[i].Excess == Delay {
			c.Limits[i].MaxWait = cmp.Or(c.Limits[i].MaxWait, limits.DefaultMaxWait)
		}
	}
	for i := range c.Routes {
		c.Routes[i].Cost = cmp.Or(c.Routes[i].Cost, 1)
	}
	return c
}

// empty is what the zero of a field means, where that is no value and not the default of something.
var empty = map[string]string{
	"routes": "all", "for": "all", "feature": "none", "cost_header": "none", "deadline": "none", "long_lived": "none", "legacy": "none",
	"trusted_proxies": "none", "exempt_from": "none", "reserve": "none", "min_size": "0", "gather": "0",
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
		name := spelled(f.Name)
		where := name
		if path != "" {
			where = path + "." + where
		}
		switch {
		case same(x, y):
		case x.Kind() == reflect.Struct && !printable(x):
			all = append(all, compare(where, x, y)...)
		default:
			all = append(all, where+" "+change(name, x, y))
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

// change says what was and what is, of the field that the file calls name.
func change(name string, x, y reflect.Value) string {
	was, is := meant(name, x), meant(name, y)
	if was == "" || is == "" || len(was)+len(is) > 400 {
		return "changed"
	}
	return was + " -> " + is
}

// meant is shown, with a word for what is left zero or empty.
func meant(name string, v reflect.Value) string {
	duration := v.Type() == reflect.TypeFor[time.Duration]()
	switch {
	case v.Kind() == reflect.Slice && v.Len() == 0,
		(duration || !printable(v)) && v.IsZero() && (v.Kind() == reflect.String || v.CanInt() || v.CanFloat()):
		return cmp.Or(empty[name], "default")
	}
	return shown(v)
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
