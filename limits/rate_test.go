package limits

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRateReadsAndPrintsItsCanonicalSpelling(t *testing.T) {
	for _, v := range []struct {
		text  string
		want  Rate
		print string // if other than text
	}{
		{"5/s", PerSecond(5), ""},
		{"10000/min", PerMinute(10000), ""},
		{"7/h", PerHour(7), ""},
		{"5/day", PerDay(5), ""},
		{"1/13s", Rate{Amount: 1, Per: 13 * time.Second}, ""},
		{"10/13s", Rate{Amount: 10, Per: 13 * time.Second}, ""},
		{"10/2s", Rate{Amount: 10, Per: 2 * time.Second}, ""}, // not 5/s: rules that count in periods see the difference
		{"1000000000/s", PerSecond(1_000_000_000), ""},
		{"9223372036854775807/day", PerDay(math.MaxInt64), ""},
		{"2/3ms", Rate{Amount: 2, Per: 3 * time.Millisecond}, ""},
		{"64KiB/s", Rate{Amount: 65536, Per: time.Second, Bytes: true}, ""},
		{"3MiB/min", Rate{Amount: 3 << 20, Per: time.Minute, Bytes: true}, ""},
		{"100B/s", Rate{Amount: 100, Per: time.Second, Bytes: true}, ""},

		{"65536B/s", Rate{Amount: 65536, Per: time.Second, Bytes: true}, "64KiB/s"},
		{"1024KiB/s", Rate{Amount: 1 << 20, Per: time.Second, Bytes: true}, "1MiB/s"},
		{"5/1s", PerSecond(5), "5/s"},
		{"5/1000ms", PerSecond(5), "5/s"},
		{"5/60s", PerMinute(5), "5/min"},
		{"5/90s", Rate{Amount: 5, Per: 90 * time.Second}, ""},
		{"5/120min", Rate{Amount: 5, Per: 2 * time.Hour}, "5/2h"},
		{"5/24h", PerDay(5), "5/day"},
		{"5/7day", Rate{Amount: 5, Per: 7 * Day}, ""},
		{"05/s", PerSecond(5), "5/s"},
	} {
		got, err := ParseRate(v.text)
		if err != nil || got != v.want {
			t.Errorf("ParseRate(%q) = %#v, %v, want %#v", v.text, got, err, v.want)
		}
		if v.print == "" {
			v.print = v.text
		}
		if s := got.String(); s != v.print {
			t.Errorf("ParseRate(%q) prints %q, want %q", v.text, s, v.print)
		}
	}
}

func TestRateErrorsQuoteTheTextAndSayHowToMendIt(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "there is no period; write an amount and a period, as in 5/s",
		"5":                       "there is no period",
		"/s":                      "the amount must start with digits",
		"-5/s":                    "the amount must start with digits, without sign",
		"+5/s":                    "the amount must start with digits, without sign",
		"1.5/s":                   `unknown unit ".5" of the amount`,
		" 5/s":                    "without sign, fraction or space",
		"5 /s":                    `unknown unit " " of the amount`,
		"5/ s":                    `unknown unit of time " s"`,
		"5/":                      `unknown unit of time ""; use ms, s, min, h or day`,
		"5/2":                     `unknown unit of time ""`,
		"5/sec":                   `unknown unit of time "sec"; use ms, s, min, h or day`,
		"5/m":                     `unknown unit of time "m"; use ms`,
		"5/S":                     `unknown unit of time "S"`,
		"5/us":                    `unknown unit of time "us"`,
		"5/s/s":                   `unknown unit of time "s/s"`,
		"5/-1s":                   `unknown unit of time "-1s"`,
		"5/1.5s":                  `unknown unit of time ".5s"`,
		"5/0s":                    "a period of 0s is not positive; use at least 1ms",
		"0/s":                     "a rate of 0 never lets anything through; to refuse all set the capacity to 0",
		"0KiB/s":                  "a rate of 0 never lets anything through",
		"64kB/s":                  `unknown unit "kB" of the amount; use B, KiB or MiB`,
		"64KB/s":                  `unknown unit "KB" of the amount`,
		"1GiB/s":                  `unknown unit "GiB" of the amount`,
		"9223372036854775808/s":   "the amount 9223372036854775808 is above 9223372036854775807; lower it",
		"8796093022208MiB/s":      "the amount is above 9223372036854775807 bytes; lower it",
		"1/9223372036854775808s":  "the period 9223372036854775808 is above",
		"1/9223372037s":           "the period is above 292 years; shorten it",
		"1/106752day":             "the period is above 292 years; shorten it",
		"5\x00/s":                 `unknown unit "\x00" of the amount`,
		strings.Repeat("9", 1000): "there is no period",
	} {
		_, err := ParseRate(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "limits: rate ") {
			t.Errorf("ParseRate(%.30q): %v\nwant ... %s ...", text, err, want)
		}
	}
}

func TestRateTravelsAsText(t *testing.T) {
	type file struct{ Rate Rate }
	data, err := json.Marshal(file{PerMinute(30)})
	if err != nil || string(data) != `{"Rate":"30/min"}` {
		t.Fatalf("marshals to %s, %v", data, err)
	}
	back := file{PerDay(1)}
	if err := json.Unmarshal([]byte(`{"Rate":"5/sec"}`), &back); err == nil || back.Rate != PerDay(1) {
		t.Errorf("a bad rate: %v, and the value became %v", err, back.Rate)
	}
	if err := json.Unmarshal(data, &back); err != nil || back.Rate != PerMinute(30) {
		t.Errorf("unmarshals to %v, %v", back.Rate, err)
	}
	for _, bad := range []Rate{{}, {Amount: -1, Per: time.Second}, {Amount: 1, Per: time.Microsecond}, {Amount: 1}} {
		if text, err := bad.MarshalText(); err == nil {
			t.Errorf("%#v marshals to %q", bad, text)
		}
		_ = bad.String() // prints something, and does not panic
	}
}

func TestEveryRateReadsBackAsItPrints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{
			Amount: rapid.Int64Min(1).Draw(t, "amount"),
			Per:    time.Duration(rapid.Int64Range(1, math.MaxInt64/int64(time.Millisecond)).Draw(t, "ms")) * time.Millisecond,
			Bytes:  rapid.Bool().Draw(t, "bytes"),
		}
		if back, err := ParseRate(r.String()); err != nil || back != r {
			t.Fatalf("%#v prints %q, which reads as %#v, %v", r, r, back, err)
		}
	})
}

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"5/s", "10000/min", "1/13s", "64KiB/s", "3MiB/2h", "100B/ms", "05/1000ms", "0/s", "-1/s", "9223372036854775808/s", "1/106752day", "5", "/", "5/s/s", "1.5/s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRate(text)
		if err != nil {
			if r != (Rate{}) {
				t.Errorf("%q: %#v beside the error %v", text, r, err)
			}
			return
		}
		if r.Amount < 1 || r.Per < time.Millisecond {
			t.Errorf("%q reads as %#v", text, r)
		}
		printed := r.String()
		if back, err := ParseRate(printed); err != nil || back != r || back.String() != printed {
			t.Errorf("%q reads as %#v, prints %q, reads as %#v, %v", text, r, printed, back, err)
		}
	})
}
