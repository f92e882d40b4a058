package pumpkin

import (
	"maps"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of an item. They keep a full document near its 4 KiB and a banner readable at a glance.
const (
	maxItems       = 16
	maxLanguages   = 8
	maxMessage     = 280 // runes, per language
	maxLinkText    = 80  // runes
	maxURL         = 1024
	maxReason      = 280 // runes; ticket too
	maxName        = 64  // bytes of an id or a feature
	maxSpread      = 3600
	defaultTTL     = time.Hour
	maxTTL         = 24 * time.Hour
	maxAhead       = 30 * 24 * time.Hour // of a start
	maxTombstones  = 64
	bidiOverrides  = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
	nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

// Entry is an item as an operator writes it. Severity, Message and Reason are required.
type Entry struct {
	Severity Severity
	// Message maps languages (BCP 47: "en", "pt-BR") to plain text; the default language must be there.
	Message map[string]string
	// URL leads to the long story, http or https; LinkText is what to show for it. Empty means no link.
	URL, LinkText string
	// Sticky items cannot be dismissed; the zero value can.
	Sticky bool
	// RecoverSpread is over how many seconds clients spread their return, 0 to 3600; zero means not at all.
	RecoverSpread int
	// Features maps names to the share of clients for which they are off; Everything stands for all. Nil means that
	// nothing is off.
	Features map[string]Feature
	// TTL is how long the item lasts unless it is put again; zero means 1 h, at most 24 h, negative is refused.
	TTL time.Duration
	// StartsAt is when the item comes into force; TTL counts from there. Zero means at once. At most 30 days ahead; a time
	// that has passed is legal as long as the item is not over.
	StartsAt time.Time
	// Template names the prepared text that this was made of; empty when it was written for the occasion. Never public.
	Template string
	// Reason says why, and Ticket where it is tracked: for the log, never public.
	Reason, Ticket string
}

// notice returns the public part of e, sharing nothing with it.
func (e Entry) notice(id string) Notice {
	n := Notice{
		ID: id, Severity: e.Severity, Message: maps.Clone(e.Message), URL: e.URL, LinkText: e.LinkText,
		Dismissible: !e.Sticky, RecoverSpread: e.RecoverSpread, Features: make(map[string]Feature, len(e.Features)),
	}
	for name, f := range e.Features {
		n.Features[name] = Feature{Off: f.Off + 0} // -0 becomes 0: equal content must be equal bytes
	}
	return n
}

// check refuses what the document must never hold. It is the one gate: the admin endpoint and Put both pass through it.
func (e Entry) check(id, defaultLang string) error {
	if !isName(id) {
		return refuse(InvalidField, "id: must be 1 to %d letters, digits, '.', '_' or '-', beginning with a letter or digit", maxName)
	}
	if e.Severity.rank() < 0 {
		return refuse(InvalidField, "severity: must be minor, major, critical or maintenance")
	}
	if err := e.checkMessage(defaultLang); err != nil {
		return err
	}
	if err := e.checkLink(); err != nil {
		return err
	}
	if err := e.checkFeatures(); err != nil {
		return err
	}
	if e.RecoverSpread < 0 || e.RecoverSpread > maxSpread {
		return refuse(InvalidField, "recover_spread: must be 0 to %d seconds", maxSpread)
	}
	if e.TTL < 0 || e.TTL > maxTTL {
		return refuse(InvalidField, "ttl: must be above 0 and at most %s; put the item again to prolong it", "24h")
	}
	if err := checkText("reason", e.Reason, maxReason); err != nil {
		return err
	}
	if e.Ticket == "" {
		return nil
	}
	return checkText("ticket", e.Ticket, maxReason)
}

func (e Entry) checkMessage(defaultLang string) error {
	if len(e.Message) > maxLanguages {
		return refuse(InvalidField, "message: %d languages; at most %d", len(e.Message), maxLanguages)
	}
	if _, ok := e.Message[defaultLang]; !ok {
		return refuse(InvalidField, "message: must be there in the default language, %q", defaultLang)
	}
	for lang, text := range e.Message {
		if !isLanguage(lang) {
			return refuse(InvalidField, "message: %q is not a language tag such as \"en\" or \"pt-BR\"", lang)
		}
		if err := checkText("message."+lang, text, maxMessage); err != nil {
			return err
		}
	}
	return nil
}

func (e Entry) checkLink() error {
	if e.URL == "" {
		if e.LinkText != "" {
			return refuse(InvalidField, "link_text: needs a url")
		}
		return nil
	}
	if len(e.URL) > maxURL {
		return refuse(InvalidField, "url: %d bytes; at most %d", len(e.URL), maxURL)
	}
	if err := checkText("url", e.URL, maxURL); err != nil {
		return err
	}
	u, err := url.Parse(e.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return refuse(InvalidField, "url: must be an absolute http or https URL without user information")
	}
	if e.LinkText == "" {
		return nil
	}
	return checkText("link_text", e.LinkText, maxLinkText)
}

func (e Entry) checkFeatures() error {
	for name, f := range e.Features {
		if name != Everything && !isName(name) {
			return refuse(InvalidField, "features: %q must be \"*\" or 1 to %d letters, digits, '.', '_' or '-'", name, maxName)
		}
		if !(f.Off >= 0 && f.Off <= 1) { // written so that NaN is refused
			return refuse(InvalidField, "features.%s.off: must be 0 to 1, the share of clients", name)
		}
	}
	return nil
}

// checkText refuses text that is blank, too long, or could deceive a reader. It is refused rather than cleaned: what is
// shown is what was written.
func checkText(field, text string, maxRunes int) error {
	if strings.TrimSpace(text) == "" {
		return refuse(InvalidField, "%s: is required and must not be blank", field)
	}
	if n := utf8.RuneCountInString(text); n > maxRunes {
		return refuse(InvalidField, "%s: %d characters; at most %d", field, n, maxRunes)
	}
	for _, r := range text {
		switch {
		case r == utf8.RuneError: // also what a JSON decoder makes of bytes or escapes that are no text
			return refuse(InvalidField, "%s: is not valid Unicode text", field)
		case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return refuse(InvalidField, "%s: control character %U; use one line of plain text", field, r)
		case strings.ContainsRune(bidiOverrides, r):
			return refuse(InvalidField, "%s: bidirectional override %U", field, r)
		}
	}
	return nil
}

// isName reports whether s may name an item or a feature: safe in URLs, logs and headers.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsRune("._-", rune(s[0])) && strings.Trim(s, nameCharacters) == ""
}

// IsLanguage reports whether s may be the language of a message: whether it has the shape of a BCP 47 tag.
func IsLanguage(s string) bool { return isLanguage(s) }

// isLanguage reports whether s has the shape of a BCP 47 tag: letters, then subtags of letters and digits.
func isLanguage(s string) bool {
	if len(s) > 35 {
		return false
	}
	for i, part := range strings.Split(s, "-") {
		if len(part) < 1 || len(part) > 8 || (i == 0 && len(part) < 2) {
			return false
		}
		for _, c := range []byte(part) {
			letter := c|0x20 >= 'a' && c|0x20 <= 'z'
			if !letter && (i == 0 || c < '0' || c > '9') {
				return false
			}
		}
	}
	return true
}
