package pumpkin

import (
	"encoding/json"
	"maps"
)

// Schema is the version of the document's shape.
const Schema = 1

// maxDocument is the size that a document may have, in bytes: it has to stay cheap for a million clients.
const maxDocument = 4 << 10

// Everything is the feature name that stands for all features.
const Everything = "*"

// Severity says how bad it is. There is no default: the zero value is refused in an Entry.
type Severity string

// The severities. Critical alone interrupts screen readers.
const (
	Minor       Severity = "minor"
	Major       Severity = "major"
	Critical    Severity = "critical"
	Maintenance Severity = "maintenance"
)

// rank orders items in the document, the most severe first; an unknown severity has rank -1.
func (s Severity) rank() int {
	switch s {
	case Critical:
		return 0
	case Major:
		return 1
	case Maintenance:
		return 2
	case Minor:
		return 3
	}
	return -1
}

// Feature says for which share of clients something is off. The zero value is off for nobody.
type Feature struct {
	// Off is the share, from 0 to 1. A client draws one number per session and leaves the feature alone when its number is
	// below the share.
	Off float64 `json:"off"`
}

// Notice is one item as the public sees it.
type Notice struct {
	ID            string             `json:"id"`
	Severity      Severity           `json:"severity"`
	Message       map[string]string  `json:"message"`
	URL           string             `json:"url,omitempty"`
	LinkText      string             `json:"link_text,omitempty"`
	Dismissible   bool               `json:"dismissible"`
	NoticeRev     uint64             `json:"notice_rev"`
	RecoverSpread int                `json:"recover_spread"`
	Features      map[string]Feature `json:"features"`
}

// sameToPeople reports whether a person sees no difference between n and o. What is off and for how long is not seen.
func (n Notice) sameToPeople(o Notice) bool {
	return n.Severity == o.Severity && n.URL == o.URL && n.LinkText == o.LinkText && n.Dismissible == o.Dismissible &&
		maps.Equal(n.Message, o.Message)
}

// offShare is the share of clients for which n switches feature off. Everything includes the feature, so the larger share
// counts: a name of its own cannot exempt a feature.
func (n Notice) offShare(feature string) float64 {
	return max(n.Features[feature].Off, n.Features[Everything].Off)
}

// Document is what clients poll. The field's meanings are those of the package documentation.
type Document struct {
	Schema      int      `json:"schema"`
	Epoch       string   `json:"epoch"`
	Rev         uint64   `json:"rev"`
	Active      bool     `json:"active"`
	PollAfter   int      `json:"poll_after"`
	DefaultLang string   `json:"default_lang"`
	Items       []Notice `json:"items"`
}

// render makes the document's bytes. They depend on nothing but d: encoding/json sorts map keys, and escapes <, > and & so
// that a page may carry the document inline.
func (d Document) render() []byte {
	body, err := json.Marshal(d)
	if err != nil {
		// Only a share that is not a number could fail, and checkFeatures lets none through.
		panic("pumpkin: document cannot be rendered: " + err.Error())
	}
	return append(body, '\n')
}
