package edge

import (
	"html"
	"net/http"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/shed"
)

// maxAccept is how much of an Accept field is read: browsers send a tenth of it.
const maxAccept = 1 << 10

// PrefersHTML reports whether who sent r is a person with a browser rather than a program: HTML is named, and no JSON is wanted
// more. "*/*" names nothing.
func PrefersHTML(r *http.Request) bool {
	lines := r.Header["Accept"]
	if len(lines) == 0 {
		return false
	}
	accept := lines[0]
	page, data := 0, 0
	for part := range strings.SplitSeq(accept[:min(len(accept), maxAccept)], ",") {
		kind, parameters, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/html", "application/xhtml+xml":
			page = max(page, quality(parameters))
		case "application/json", ProblemContentType:
			data = max(data, quality(parameters))
		}
	}
	return page > 0 && page >= data
}

// quality reads the q of a media range, in thousandths; one that cannot be read is 0.
func quality(parameters string) int {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		q, err := strconv.ParseFloat(value, 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return int(q * 1000)
	}
	return 1000
}

// HTMLContentType is the media type of a refusal's page.
const HTMLContentType = "text/html; charset=utf-8"

// page is a refusal for people, in two halves with the wait between them. It has neither scripts nor styles, so that every content
// security policy lets it be, and needs nothing else to be loaded.
type page struct{ before, after string }

func newPage(p Problem) page {
	title, text := words(p)
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>` + html.EscapeString(title) + `</title>
</head>
<body>
<main>
<h1>` + html.EscapeString(title) + `</h1>
<p>` + html.EscapeString(text) + "</p>\n")
	before := b.String()
	b.Reset()
	reason := string(p.Reason)
	if p.Rule != "" {
		reason += ", " + p.Rule
	}
	b.WriteString(`<p><small>` + strconv.Itoa(p.Status) + " " + html.EscapeString(reason) + "</small></p>\n</main>\n</body>\n</html>\n")
	return page{before, b.String()}
}

// words are the title and the text for a person, who sees no fields.
func words(p Problem) (title, text string) {
	switch p.Reason {
	case shed.FeatureOff:
		return "Not available at the moment", p.Detail
	case shed.NoIdentity:
		return "Access denied", "It cannot be told who is asking, and this service has to know."
	case shed.BodyTooSlow:
		return "Not received", "What you have sent did not arrive in time. Try again when your connection is better."
	case shed.CostTooLarge:
		return "Too much at once", "This is more than may be asked for at once. Waiting does not help; ask for less."
	case shed.InFlight:
		return "Too many requests", "Several of your requests are still running. Let some of them end, then try again."
	}
	if p.Status == http.StatusTooManyRequests {
		return "Too many requests", "You have asked more often than this service allows. Nothing is broken; wait a little."
	}
	return "The service is busy", "There is more to do than can be done at the moment. Nothing was done for this request."
}

// with returns the page with a wait in seconds, as in Retry-After; empty means that waiting does not help.
func (p page) with(retryAfter string) string {
	seconds, err := strconv.ParseInt(retryAfter, 10, 64)
	if err != nil {
		return p.before + p.after
	}
	return p.before + "<p>Try again in " + span(seconds) + ".</p>\n" + p.after
}

// span says a wait as people do, never less than it is.
func span(seconds int64) string {
	n, unit := seconds, "second"
	switch {
	case seconds >= 2*86400:
		n, unit = (seconds-1)/86400+1, "day"
	case seconds >= 2*3600:
		n, unit = (seconds-1)/3600+1, "hour"
	case seconds >= 120:
		n, unit = (seconds-1)/60+1, "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return strconv.FormatInt(n, 10) + " " + unit
}
