package middleware

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestPause bounds for how long a server can tell us to stay away: a rule of so many a day says up to 86 400 s.
const longestPause = 24 * time.Hour

// pauseOf returns for how long a response asks its client to stay away: Retry-After of a refusal, else the longest t of the
// RateLimit field's quotas that have nothing left. 0 means that it does not ask. What cannot be parsed asks for nothing.
func pauseOf(r *http.Response) time.Duration {
	if age := r.Header.Get("Age"); age != "" && age != "0" {
		return 0 // from a cache: it was said to somebody else, some time ago
	}
	if after, ok := retryAfter(r.Header); ok && (r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable) {
		return min(after, longestPause)
	}
	var longest time.Duration
	for _, field := range r.Header.Values("RateLimit") {
		for _, item := range items(field) {
			left, known := item["r"]
			if t := item["t"]; known && left == 0 && t > 0 {
				longest = max(longest, time.Duration(min(t, int64(longestPause/time.Second)))*time.Second)
			}
		}
	}
	return longest
}

// retryAfter reads Retry-After: digits, or a date, which counts from the response's own Date, for clocks differ.
func retryAfter(h http.Header) (time.Duration, bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0, false
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil { // more digits than a number has
			return longestPause, true
		}
		return time.Duration(min(seconds, int64(longestPause/time.Second))) * time.Second, true
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(until.Sub(now), 0), true
}

// items parses a structured field that is a List of Items with Parameters (RFC 9651) and returns the integer parameters of each
// item. Of an invalid field nothing is believed.
func items(field string) (list []map[string]int64) {
	s := sfv{rest: strings.TrimLeft(field, " ")}
	for s.rest != "" {
		if !s.bare() {
			return nil
		}
		numbers, ok := s.parameters()
		if !ok {
			return nil
		}
		list = append(list, numbers)
		s.rest = strings.TrimLeft(s.rest, " \t")
		if s.rest == "" {
			return list
		}
		if s.rest[0] != ',' {
			return nil
		}
		if s.rest = strings.TrimLeft(s.rest[1:], " \t"); s.rest == "" {
			return nil // a comma at the end
		}
	}
	return list
}

// sfv reads a structured field from its beginning.
type sfv struct {
	rest   string
	number int64 // of the last bare item, if it was an integer
	whole  bool
}

// parameters reads ;key=value as often as there is one.
func (s *sfv) parameters() (numbers map[string]int64, ok bool) {
	numbers = make(map[string]int64, 2)
	for strings.HasPrefix(s.rest, ";") {
		s.rest = strings.TrimLeft(s.rest[1:], " ")
		key := s.take(func(c byte, first bool) bool {
			return 'a' <= c && c <= 'z' || c == '*' || !first && ('0' <= c && c <= '9' || c == '_' || c == '-' || c == '.')
		})
		if key == "" {
			return nil, false
		}
		delete(numbers, key) // the last of several counts
		if !strings.HasPrefix(s.rest, "=") {
			continue // true
		}
		s.rest = s.rest[1:]
		if !s.bare() {
			return nil, false
		}
		if s.whole {
			numbers[key] = s.number
		}
	}
	return numbers, true
}

// take returns and skips the longest beginning of what is left that fits.
func (s *sfv) take(fits func(c byte, first bool) bool) string {
	n := 0
	for n < len(s.rest) && fits(s.rest[n], n == 0) {
		n++
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

// bare skips a bare item: a string, a token, a byte sequence, a boolean, a number, a date or a display string.
func (s *sfv) bare() bool {
	s.whole = false
	if s.rest == "" {
		return false
	}
	switch c := s.rest[0]; {
	case c == '"':
		return s.quoted()
	case c == ':':
		end := strings.IndexByte(s.rest[1:], ':')
		if end < 0 || strings.ContainsAny(s.rest[1:1+end], "\r\n") { // which the decoder would skip
			return false
		}
		if _, err := base64.StdEncoding.DecodeString(s.rest[1 : 1+end]); err != nil {
			return false
		}
		s.rest = s.rest[end+2:]
		return true
	case c == '?':
		if len(s.rest) < 2 || s.rest[1] != '0' && s.rest[1] != '1' {
			return false
		}
		s.rest = s.rest[2:]
		return true
	case c == '-' || '0' <= c && c <= '9':
		return s.digits()
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '*':
		s.take(func(c byte, _ bool) bool {
			return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
		})
		return true
	}
	return false
}

// quoted skips a string.
func (s *sfv) quoted() bool {
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '\\':
			if i++; i == len(s.rest) || s.rest[i] != '"' && s.rest[i] != '\\' {
				return false
			}
		case c == '"':
			s.rest = s.rest[i+1:]
			return true
		case c < 0x20 || c > 0x7e:
			return false
		}
	}
	return false
}

// digits reads a number; only an integer has a value here.
func (s *sfv) digits() bool {
	sign := s.take(func(c byte, first bool) bool { return first && c == '-' })
	text := s.take(func(c byte, _ bool) bool { return '0' <= c && c <= '9' })
	if text == "" {
		return false
	}
	if strings.HasPrefix(s.rest, ".") {
		s.rest = s.rest[1:]
		fraction := s.take(func(c byte, _ bool) bool { return '0' <= c && c <= '9' })
		return len(text) <= 12 && 1 <= len(fraction) && len(fraction) <= 3
	}
	n, err := strconv.ParseInt(sign+text, 10, 64)
	s.number, s.whole = n, true
	return err == nil && len(text) <= 15
}
