package pumpkin

import "strings"

// matchesTag reports whether a header of entity tags (If-None-Match, as its lines) holds tag, or is "*". The comparison is
// weak (RFC 9110, 8.8.3.2): a proxy that compresses turns a strong tag into W/"…", and the content is still the same. From
// the first syntax error on a line is ignored; an answer in full is never wrong.
func matchesTag(lines []string, tag string) bool {
	for _, line := range lines {
		if strings.Trim(line, " \t") == "*" {
			return true
		}
		for {
			line = strings.TrimLeft(line, " \t,") // empty elements of a list are legal
			line = strings.TrimPrefix(line, "W/")
			end := tagEnd(line)
			if end == 0 {
				break
			}
			if line[:end] == tag {
				return true
			}
			line = strings.TrimLeft(line[end:], " \t")
			if line == "" || line[0] != ',' {
				break
			}
		}
	}
	return false
}

// tagEnd returns the length of the quoted tag that s begins with, 0 when there is none.
func tagEnd(s string) int {
	if s == "" || s[0] != '"' {
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c < 0x21 || c == 0x7f:
			return 0
		}
	}
	return 0
}
