package middleware

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"pgregory.net/rapid"
)

func TestHowLongAnAnswerAsksToStayAway(t *testing.T) {
	const date, later = "Mon, 30 Nov 2026 12:00:00 GMT", "Mon, 30 Nov 2026 12:01:30 GMT"
	for _, c := range []struct {
		status int
		header http.Header
		want   time.Duration
	}{
		{429, http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		{503, http.Header{"Retry-After": {" 7 "}}, 7 * time.Second},
		{503, http.Header{"Retry-After": {"0"}}, 0},
		{200, http.Header{"Retry-After": {"7"}}, 0}, // means nothing here
		{301, http.Header{"Retry-After": {"7"}}, 0},
		{429, http.Header{"Retry-After": {"7.5"}}, 0},
		{429, http.Header{"Retry-After": {"-7"}}, 0},
		{429, http.Header{"Retry-After": {"1m"}}, 0},
		{429, http.Header{"Retry-After": {"86400"}}, 24 * time.Hour},
		{429, http.Header{"Retry-After": {"99999999999999999999999999"}}, 24 * time.Hour},
		{429, http.Header{"Retry-After": {later}, "Date": {date}}, 90 * time.Second},
		{429, http.Header{"Retry-After": {date}, "Date": {later}}, 0},
		{429, http.Header{"Retry-After": {"7"}, "Ratelimit": {`"a";r=0;t=60`}}, 7 * time.Second}, // Retry-After goes first
		{429, http.Header{"Ratelimit": {`"a";r=0;t=60`}}, time.Minute},
		{200, http.Header{"Ratelimit": {`"a";r=0;t=60`}}, time.Minute},
		{200, http.Header{"Ratelimit": {`"a";r=1;t=60`}}, 0},
		{200, http.Header{"Ratelimit": {`"a";r=0`}}, 0},
		{200, http.Header{"Ratelimit": {`"a";t=60`}}, 0},
		{200, http.Header{"Ratelimit": {`"a";r=0;t=1`, `"b";r=0;t=5;pk=:dGVuYW50LTc=:, "c";r=9;t=90`}}, 5 * time.Second},
		{200, http.Header{"Ratelimit": {`"a\"b;r=0;t=9";r=0;t=5`}}, 5 * time.Second},
		{200, http.Header{"Ratelimit": {`"a";r=0;t=60`}, "Age": {"10"}}, 0},
		{200, http.Header{"Ratelimit": {`"a";r=0;t=60`}, "Age": {"0"}}, time.Minute},
		{200, http.Header{"Ratelimit": {`"a";r=0;t=999999999999999`}}, 24 * time.Hour},
		{200, http.Header{"Ratelimit": {`"a";r=0;t=60, "b`}}, 0}, // nothing of what is broken is believed
		{200, http.Header{"Ratelimit": {`limit=10, remaining=0, reset=5`}}, 0},
	} {
		if got := pauseOf(&http.Response{StatusCode: c.status, Header: c.header}); got != c.want {
			t.Errorf("%d %v: %v, want %v", c.status, c.header, got, c.want)
		}
	}
}

// asIndependently reads the field with another parser. ok is whether it is a List of Items.
func asIndependently(field string) (list []map[string]int64, ok bool) {
	parsed, err := httpsfv.UnmarshalList([]string{field})
	if err != nil {
		return nil, false
	}
	for _, member := range parsed {
		item, is := member.(httpsfv.Item)
		if !is {
			return nil, false
		}
		numbers := make(map[string]int64)
		for _, key := range item.Params.Names() {
			value, _ := item.Params.Get(key)
			if n, is := value.(int64); is {
				numbers[key] = n
			}
		}
		list = append(list, numbers)
	}
	return list, true
}

// FuzzRateLimit holds the reading of the field against an independent parser. Ours may refuse what the other takes (inner lists,
// dates, display strings), but must not read anything else in it.
func FuzzRateLimit(f *testing.F) {
	for _, seed := range []string{
		"", `"a";r=0;t=60`, `"a";r=0;t=60, "b";r=1`, `a;q=100;w=1`, `"a" ; r=0`, `"a";r=0;r=5`, `"a";r`, `"a";r=?0;t=:AA==:`, `"a";r=-5;t=1.5`,
		`("a" "b");r=0`, `@123;r=0`, `%"x";r=0`, `"a",`, `,`, `"\"";r=0`, `"\a"`, "\"\x80\"", `1234567890123456`, `*a/b:c;*k=1`, `"a"; r=0;  t=1 ,	"b"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) { readAlike(t, field) })
}

// readAlike holds the two parsers together.
func readAlike(t interface{ Fatalf(string, ...any) }, field string) {
	got := items(field)
	want, ok := asIndependently(field)
	if !ok {
		if len(got) > 0 {
			t.Fatalf("%q is no list of items, and is read as %v", field, got)
		}
		return
	}
	if len(got) == 0 {
		if len(want) > 0 && !strings.ContainsAny(field, "@%(") && !strings.Contains(field, ":") {
			t.Fatalf("%q is not read, and is %v", field, want)
		}
		return
	}
	if len(got) != len(want) {
		t.Fatalf("%q is read as %v, and is %v", field, got, want)
	}
	for i := range want {
		for _, key := range []string{"r", "t"} {
			a, known := got[i][key]
			b, is := want[i][key]
			if known != is || a != b {
				t.Fatalf("%q is read as %v, and is %v", field, got, want)
			}
		}
	}
}

// The same for fields that are nearly right, which a fuzzer finds rarely.
func TestRateLimitIsReadAsAnIndependentParserReadsIt(t *testing.T) {
	bare := rapid.SampledFrom([]string{
		`"a"`, `"a\"b"`, `"\\"`, `"\a"`, `"\`, `" ~"`, "\"\x1f\"", "\"\x7f\"", `""`, `"`, `a`, `z9`, `A`, `Z`, `*`, `a*b:c/d!~`, `a@`, `0`, `9`, `-1`, `-`, `--1`, `00012`,
		`123456789012345`, `1234567890123456`, `-123456789012345`, `1.5`, `1.`, `.5`, `1.123`, `1.1234`, `123456789012.1`, `1234567890123.1`, `-1.5`,
		`?0`, `?1`, `?2`, `?`, `:AA==:`, `::`, `:A:`, `:AA==`, `:`, "", " ",
	})
	key := rapid.SampledFrom([]string{"r", "t", "r", "t", "*", "a", "z", "r0", "r9", "r_", "r-", "r.", "r*", "R", "0", "_", "-", ".", "", "rZ"})
	blank := rapid.SampledFrom([]string{"", "", "", " ", "  ", "\t"})
	rapid.Check(t, func(t *rapid.T) {
		var field strings.Builder
		for i := range rapid.IntRange(1, 3).Draw(t, "items") {
			if i > 0 {
				field.WriteString(blank.Draw(t, "blank") + "," + blank.Draw(t, "blank"))
			}
			field.WriteString(bare.Draw(t, "item"))
			for range rapid.IntRange(0, 3).Draw(t, "parameters") {
				field.WriteString(";" + blank.Draw(t, "blank") + key.Draw(t, "key"))
				if rapid.Bool().Draw(t, "has a value") {
					field.WriteString("=" + bare.Draw(t, "value"))
				}
			}
		}
		readAlike(t, field.String()+rapid.SampledFrom([]string{"", "", "", " ", ",", "x", ", "}).Draw(t, "end"))
	})
}
