package limits

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The units a rate is written in, largest first, so that the first that divides evenly is the canonical one.
var (
	byteUnits = []struct {
		name string
		size int64
	}{{"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

	timeUnits = []struct {
		name string
		size time.Duration
	}{{"day", Day}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
)

const digits = "0123456789"

// ParseRate reads a rate as it is written in configuration files:
//
//	AMOUNT[B|KiB|MiB]/[N](ms|s|min|h|day)
//
// such as 5/s, 10000/min, 1/13s, 5/day, 64KiB/s. N is 1 when absent. There is no sign, no fraction and no space. Errors
// quote the text and say how to mend it.
func ParseRate(text string) (Rate, error) {
	r, err := parseRate(text)
	if err != nil {
		return Rate{}, fmt.Errorf("limits: rate %q: %w", text, err)
	}
	return r, nil
}

func parseRate(text string) (Rate, error) {
	amount, period, found := strings.Cut(text, "/")
	if !found {
		return Rate{}, errors.New("there is no period; write an amount and a period, as in 5/s")
	}
	n, unit, err := number(amount)
	if err != nil {
		return Rate{}, fmt.Errorf("the amount %w", err)
	}
	r := Rate{Amount: n, Bytes: unit != ""}
	if r.Bytes {
		size, err := byteUnit(unit)
		if err != nil {
			return Rate{}, err
		}
		if n > math.MaxInt64/size {
			return Rate{}, fmt.Errorf("the amount is above %d bytes; lower it", int64(math.MaxInt64))
		}
		r.Amount = n * size
	}
	if r.Per, err = parsePeriod(period); err != nil {
		return Rate{}, err
	}
	return r, r.check()
}

func parsePeriod(text string) (time.Duration, error) {
	n, unit := int64(1), text
	if text != "" && strings.Contains(digits, text[:1]) {
		var err error
		if n, unit, err = number(text); err != nil {
			return 0, fmt.Errorf("the period %w", err)
		}
	}
	for _, u := range timeUnits {
		if u.name != unit {
			continue
		}
		if n > math.MaxInt64/int64(u.size) {
			return 0, fmt.Errorf("the period is above 292 years; shorten it")
		}
		return time.Duration(n) * u.size, nil
	}
	return 0, fmt.Errorf("unknown unit of time %q; use ms, s, min, h or day, as in 5/s or 10/2min", unit)
}

// number splits text into its leading digits and the rest.
func number(text string) (n int64, rest string, err error) {
	rest = strings.TrimLeft(text, digits)
	lead := text[:len(text)-len(rest)]
	if lead == "" {
		return 0, "", errors.New("must start with digits, without sign, fraction or space, as in 5/s")
	}
	n, err = strconv.ParseInt(lead, 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("%s is above %d; lower it", lead, int64(math.MaxInt64))
	}
	return n, rest, nil
}

func byteUnit(name string) (int64, error) {
	for _, u := range byteUnits {
		if u.name == name {
			return u.size, nil
		}
	}
	return 0, fmt.Errorf("unknown unit %q of the amount; use B, KiB or MiB for bytes and nothing for requests, as in 64KiB/s", name)
}

// String returns the one canonical spelling, which ParseRate reads back to the same value: the largest units that need no
// fraction. A rate that no rule would accept is printed so that one sees why; an amount of 0 is a quota of windows.
func (r Rate) String() string {
	if checkQuota(r) != nil && r.check() != nil {
		return fmt.Sprintf("%d/%v", r.Amount, r.Per)
	}
	amount, unit := r.Amount, ""
	if r.Bytes {
		for _, u := range byteUnits {
			if r.Amount%u.size == 0 {
				amount, unit = r.Amount/u.size, u.name
				break
			}
		}
	}
	text := strconv.FormatInt(amount, 10) + unit + "/"
	for _, u := range timeUnits {
		if r.Per%u.size == 0 {
			if n := int64(r.Per / u.size); n != 1 {
				text += strconv.FormatInt(n, 10)
			}
			return text + u.name
		}
	}
	return text // not reached: check demands whole milliseconds
}

// MarshalText returns String, or an error for a rate that ParseRate would not read.
func (r Rate) MarshalText() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("limits: rate %v: %w", r, err)
	}
	return []byte(r.String()), nil
}

// UnmarshalText sets r to what ParseRate reads; on an error r stays as it was.
func (r *Rate) UnmarshalText(text []byte) error {
	parsed, err := ParseRate(string(text))
	if err == nil {
		*r = parsed
	}
	return err
}
