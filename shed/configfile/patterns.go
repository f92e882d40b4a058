package configfile

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/internal/check"
)

// patterns checks the routes' net/http patterns the way the middleware will use them: by registering them. What net/http
// refuses there, by a panic, is a mistake of the file here.
type patterns struct {
	mux     *http.ServeMux
	routes  []placed
	exempt  *http.ServeMux // the program's exempt routes alone
	clashes int
}

// placed is a route that is in the table, with its line; 0 is the program.
type placed struct {
	shed.Route
	line int
}

// maxClashes bounds the search for the other party of a conflict, which looks at every earlier route.
const maxClashes = 20

func newPatterns(exempt []shed.Route) *patterns {
	t := &patterns{mux: http.NewServeMux(), exempt: http.NewServeMux()}
	for _, e := range exempt {
		if register(t.exempt, e.Match) == "" && register(t.mux, e.Match) == "" {
			t.routes = append(t.routes, placed{Route: e})
		}
	}
	return t
}

// add puts the route r, read from o, into the table and reports what speaks against it.
func (t *patterns) add(o object, r shed.Route) {
	v := o.fields["match"]
	if why := fault(r.Match); why != "" {
		v.fail(shown(r.Match)+" is not a route pattern: "+why, `write it like net/http does, such as "POST /orders/{id}"`)
		return
	}
	if method, _, named := strings.Cut(r.Match, " "); named && !check.Method(method) {
		v.warn(bare(method)+" is no registered method, and hardly any request has it", "check how it is written")
	}
	if host, capitals := check.Upper(r.Match); capitals {
		v.warn(shown(host)+" is matched to the letter, and most clients send hosts in small letters", "write "+bare(strings.ToLower(host)))
	}
	if !r.Exempt && t.held(r.Match) {
		v.fail(shown(r.Match)+" would take requests from an exempt route of the program, which always holds",
			"remove this route, or add exempt: true")
		return
	}
	if register(t.mux, r.Match) == "" {
		t.routes = append(t.routes, placed{r, v.line})
		return
	}
	if t.clashes++; t.clashes > maxClashes {
		return
	}
	for _, other := range t.routes {
		if other.line == 0 && r.Exempt && r.Match == other.Match {
			continue
		}
		if compatible(other.Match, r.Match) {
			continue
		}
		if other.Match == r.Match {
			v.fail(fmt.Sprintf("%s is already the pattern of route %s", shown(r.Match), other), "remove one of the two")
		} else {
			v.fail(fmt.Sprintf("%s conflicts with %s of route %s: some requests match both, and neither is more specific",
				shown(r.Match), shown(other.Match), other), "make one of them more specific, or remove it")
		}
		return
	}
}

// String names the route for messages.
func (p placed) String() string {
	if p.line == 0 {
		return bare(p.Name) + " of the program"
	}
	return fmt.Sprintf("%s in line %d", bare(p.Name), p.line)
}

// sentinel is the handler of every pattern here; redirects that the mux makes up itself are not sentinels.
type sentinel struct{}

func (sentinel) ServeHTTP(http.ResponseWriter, *http.Request) {}

// register adds a pattern to mux and returns why that is impossible, or "".
func register(mux *http.ServeMux, pattern string) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = "it cannot be registered"
			if s := fmt.Sprint(r); strings.HasPrefix(s, "parsing ") {
				if _, after, found := strings.Cut(s, `": `); found {
					why = strings.ReplaceAll(after, "\n", " ")
				}
			}
		}
	}()
	mux.Handle(pattern, sentinel{})
	return ""
}

// fault returns why pattern cannot be used, or "". Beyond what net/http refuses it finds what no request would ever match.
func fault(pattern string) string {
	if why := check.Pattern(pattern); why != "" {
		return why
	}
	return register(http.NewServeMux(), pattern)
}

// compatible tells whether two patterns can stand side by side.
func compatible(a, b string) bool {
	mux := http.NewServeMux()
	return register(mux, a) == "" && register(mux, b) == ""
}

// held tells whether pattern, if it were not there, would leave its requests to an exempt route of the program. Of two
// patterns that do not conflict one is inside the other or they share no request, so one typical request of pattern decides.
func (t *patterns) held(pattern string) bool {
	h, _ := t.exempt.Handler(typical(pattern))
	_, ours := h.(sentinel)
	return ours
}

// typical makes a request that pattern matches and that a narrower pattern would not.
func typical(pattern string) *http.Request {
	const odd = "~~spillway~~"
	method, rest, found := strings.Cut(pattern, " ")
	if !found {
		method, rest = "SPILLWAY", pattern // no pattern with a method matches this one
	}
	rest = strings.TrimLeft(rest, " \t")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		slash = len(rest)
	}
	host, path := rest[:slash], rest[slash:]
	if host == "" {
		host = "spillway.invalid"
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		switch {
		case s == "{$}" || s == "" && i < len(segments)-1:
			segments[i] = ""
		case s == "" || strings.HasPrefix(s, "{"):
			segments[i] = odd
		default:
			if plain, err := url.PathUnescape(s); err == nil {
				segments[i] = plain
			}
		}
	}
	return &http.Request{Method: method, Host: host, URL: &url.URL{Path: strings.Join(segments, "/")}}
}
