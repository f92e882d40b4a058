package pumpkin

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// maxBody is how much a PUT may send, in bytes.
const maxBody = 16 << 10

// parseEntry reads the body of a PUT of the item id. The error is a *Refusal.
func parseEntry(body []byte, id string) (Entry, error) {
	var e Entry
	err := eachField(body, func(name string, raw json.RawMessage) error {
		if known, err := checkGiven(name, raw, id); known {
			return err
		}
		return e.setField(name, raw)
	})
	return e, err
}

// checkGiven checks the fields that an item has in the document and that a PUT does not decide, so that an item can be put as it was
// read: the id is that of the path, and the notice_rev is counted here.
func checkGiven(name string, raw json.RawMessage, id string) (known bool, err error) {
	switch name {
	case "id":
		var given string
		if err := json.Unmarshal(raw, &given); err != nil {
			return true, wrongType(name, err)
		}
		if given != id {
			return true, refuse(InvalidField, "id: is not that of the path; leave the field out")
		}
	case "notice_rev":
		var given uint64
		if err := json.Unmarshal(raw, &given); err != nil {
			return true, wrongType(name, err)
		}
	default:
		return false, nil
	}
	return true, nil
}

// eachField reads a body as one JSON object and passes its fields to set. It is stricter than encoding/json, which takes the
// last of two equal keys, "TTL" for "ttl" and null for nothing: a switch that is thrown in a hurry must do what it says or
// nothing. The error is a *Refusal.
func eachField(body []byte, set func(name string, raw json.RawMessage) error) error {
	if !utf8.Valid(body) {
		return refuse(MalformedJSON, "the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := checkValue(dec, 0); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return refuse(MalformedJSON, "the body must be one JSON object and nothing else")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // in order, so that of two mistakes always the same is reported
		if err := set(name, fields[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkValue walks one JSON value and refuses what encoding/json would let pass in silence: a key given twice, and null.
func checkValue(dec *json.Decoder, depth int) error {
	const deepest = 6 // the break-glass file's {items: {id: {features: {name: {off: x}}}}} and one to spare
	if depth > deepest {
		return refuse(InvalidField, "the body is nested too deeply")
	}
	token, err := dec.Token()
	if err != nil {
		return refuse(MalformedJSON, "the body is not JSON: %v", err)
	}
	switch token {
	case nil:
		return refuse(InvalidField, "null is not a value here; leave the field out")
	case json.Delim('{'), json.Delim('['):
	default:
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if token == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return refuse(MalformedJSON, "the body is not JSON: %v", err)
			}
			name, _ := key.(string)
			if seen[name] {
				return refuse(InvalidField, "%q is given twice", name)
			}
			seen[name] = true
		}
		if err := checkValue(dec, depth+1); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return refuse(MalformedJSON, "the body is not JSON: %v", err)
	}
	return nil
}

// setField sets the field of e that the body calls name.
func (e *Entry) setField(name string, raw json.RawMessage) error {
	var err error
	switch name {
	case "severity":
		err = json.Unmarshal(raw, &e.Severity)
	case "message":
		err = json.Unmarshal(raw, &e.Message)
	case "url":
		err = json.Unmarshal(raw, &e.URL)
	case "link_text":
		err = json.Unmarshal(raw, &e.LinkText)
	case "dismissible":
		var dismissible bool
		err = json.Unmarshal(raw, &dismissible)
		e.Sticky = !dismissible
	case "recover_spread":
		err = json.Unmarshal(raw, &e.RecoverSpread)
	case "features":
		return e.setFeatures(raw)
	case "ttl":
		e.TTL, err = parseTTL(raw)
		return err
	case "starts_at":
		return e.setStart(raw)
	case "reason":
		err = json.Unmarshal(raw, &e.Reason)
	case "ticket":
		err = json.Unmarshal(raw, &e.Ticket)
	default:
		return refuse(UnknownField, "%q is not a field of an item", name)
	}
	if err != nil {
		return wrongType(name, err)
	}
	return nil
}

func (e *Entry) setFeatures(raw json.RawMessage) error {
	var features map[string]map[string]float64
	if err := json.Unmarshal(raw, &features); err != nil {
		return wrongType("features", err)
	}
	e.Features = make(map[string]Feature, len(features))
	for _, name := range slices.Sorted(maps.Keys(features)) {
		for key := range features[name] {
			if key != "off" {
				return refuse(UnknownField, "features.%s: %q is not a field of a feature; say {\"off\": 1}", name, key)
			}
		}
		off, ok := features[name]["off"]
		if !ok {
			return refuse(InvalidField, "features.%s: must say {\"off\": 0..1}", name)
		}
		e.Features[name] = Feature{Off: off}
	}
	return nil
}

// parseTTL refuses 0, which as a field of an Entry would mean the default.
func parseTTL(raw json.RawMessage) (time.Duration, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return 0, wrongType("ttl", err)
	}
	ttl, err := time.ParseDuration(text)
	if err != nil {
		return 0, refuse(InvalidField, "ttl: must be a duration such as \"30m\" or \"2h\"")
	}
	if ttl <= 0 {
		return 0, refuse(InvalidField, "ttl: must be above 0; to end an item, DELETE it")
	}
	return ttl, nil
}

// setStart wants RFC 3339 with an offset: a time of day without one means something else to every reader.
func (e *Entry) setStart(raw json.RawMessage) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return wrongType("starts_at", err)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.IsZero() || at.Year() < 1971 || at.Year() > 9998 {
		return refuse(InvalidField, "starts_at: must be a time with its offset, such as \"2030-01-31T22:00:00Z\"")
	}
	e.StartsAt = at
	return nil
}

// wrongType says what a field should have been, in the words of JSON.
func wrongType(field string, err error) error {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return refuse(InvalidField, "%s: a JSON %s does not belong here", field, mismatch.Value)
	}
	return refuse(InvalidField, "%s: %v", field, err)
}
