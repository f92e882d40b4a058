package edge

import (
	"net/http"
	"slices"
	"strings"
)

// exposeFields lets a script of another origin see the fields that say what to do.
func exposeFields(header http.Header, r *http.Request, fields string) {
	if r.Header["Origin"] != nil {
		header["Access-Control-Expose-Headers"] = append(slices.Clip(header["Access-Control-Expose-Headers"]), fields)
	}
}

// letPagesRead makes the refusal of a feature that is off readable for scripts of any origin, also where CORS is answered by
// the handler that is not reached: a script that sees nothing but a network error cannot tell people what is off, and tries
// again. The refusal says what the public document says to everybody. What a layer further out has decided stays.
func letPagesRead(header http.Header, r *http.Request) {
	origin := r.Header["Origin"]
	if len(origin) != 1 {
		return
	}
	exposeFields(header, r, "Retry-After, Pumpkin-Feature, Pumpkin-Rev")
	if header["Access-Control-Allow-Origin"] != nil {
		return
	}
	header["Access-Control-Allow-Origin"] = []string{origin[0]} // by name, for requests with cookies do not take a star
	header["Access-Control-Allow-Credentials"] = []string{"true"}
	if !slices.ContainsFunc(header["Vary"], func(line string) bool { return strings.Contains(strings.ToLower(line), "origin") }) {
		header["Vary"] = append(slices.Clip(header["Vary"]), "Origin")
	}
}
