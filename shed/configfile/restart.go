package configfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// live are the fields of Config and Pumpkin that a running program takes over. All others need a restart, so that a field which
// nobody has thought about is refused and not silently ignored.
var live = []string{"Shed", "Pumpkin.PollAfter", "Pumpkin.PollIdle", "Upstreams", "APIKeysFile", "Warnings"}

// spelled are the keys in the file of fields that are called otherwise.
var spelled = map[string]string{
	"Pumpkin.AdminListen": "pumpkin.admin.listen", "Pumpkin.TokenFile": "pumpkin.admin.token_file",
	"Pumpkin.Redis": "pumpkin.redis", "Pumpkin.Auto": "pumpkin.auto", "Pumpkin.AdminHosts": "pumpkin.admin.hosts", "Pumpkin.AuditFile": "pumpkin.admin.audit_file",
}

// restart lists what differs between c, which is in force, and next, and cannot be changed while the program runs.
func (c *Config) restart(next *Config) error {
	p := &problems{path: next.path}
	refuse := func(field string, was, is any) {
		key := spelled[field]
		if key == "" {
			key = snake(field)
		}
		what := key + ": is not what the program started with"
		if s, ok := is.(string); ok {
			what = fmt.Sprintf("%s: is %s now, was %s", key, shown(s), shown(was.(string)))
		}
		p.add(next.places.around(key), what+", which needs a restart", "restart the program, or put it back")
	}
	eachChange(reflect.ValueOf(*c), reflect.ValueOf(*next), func(field string, was, is any) {
		if field != "Pumpkin" {
			refuse(field, was, is)
			return
		}
		eachChange(reflect.ValueOf(was), reflect.ValueOf(is), func(key string, was, is any) {
			if key = "Pumpkin." + key; !slices.Contains(live, key) {
				refuse(key, was, is)
			}
		})
	})
	return p.err()
}

// eachChange calls differs for each exported field in which two structs differ, but for those that are live.
func eachChange(a, b reflect.Value, differs func(field string, was, is any)) {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if !f.IsExported() || slices.Contains(live, f.Name) {
			continue
		}
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			differs(f.Name, x, y)
		}
	}
}

// snake is the file's spelling of a field's name.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && name[i-1] != '.' {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
