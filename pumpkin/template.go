package pumpkin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The names of the prepared texts that are always there, unless Config.Templates has others by these names.
const (
	SiteDown           = "site-down"   // critical, everything off
	Degraded           = "degraded"    // major, nothing off
	PlannedMaintenance = "maintenance" // maintenance, nothing off
)

// builtIn are prepared texts in four languages, so that the big switch works before anybody has prepared their own.
var builtIn = map[string]Entry{
	SiteDown: {
		Severity: Critical, Sticky: true, RecoverSpread: 60, Features: map[string]Feature{Everything: {Off: 1}},
		Message: map[string]string{
			"en": "We are down at the moment. We are working on it; please try again later.",
			"de": "Wir sind im Moment nicht erreichbar. Wir arbeiten daran; bitte versuchen Sie es später noch einmal.",
			"es": "En este momento no estamos disponibles. Estamos trabajando en ello; inténtelo más tarde.",
			"fr": "Nous sommes indisponibles pour le moment. Nous y travaillons ; merci de réessayer plus tard.",
		},
	},
	Degraded: {
		Severity: Major,
		Message: map[string]string{
			"en": "Some things are slow or fail at the moment. We are working on it.",
			"de": "Manches ist im Moment langsam oder schlägt fehl. Wir arbeiten daran.",
			"es": "Algunas funciones van lentas o fallan en este momento. Estamos trabajando en ello.",
			"fr": "Certaines fonctions sont lentes ou échouent en ce moment. Nous y travaillons.",
		},
	},
	PlannedMaintenance: {
		Severity: Maintenance,
		Message: map[string]string{
			"en": "We are doing planned maintenance. Some things may not work for a while.",
			"de": "Wir führen geplante Wartungsarbeiten durch. Manches funktioniert für eine Weile vielleicht nicht.",
			"es": "Estamos realizando un mantenimiento programado. Es posible que algo no funcione durante un rato.",
			"fr": "Une maintenance prévue est en cours. Certaines fonctions peuvent être indisponibles un moment.",
		},
	},
}

// newTemplates checks the prepared texts and adds those built in that are there in the default language. A text that would
// be refused in an emergency is refused at the start.
func newTemplates(own map[string]Entry, lang string) (map[string]Entry, error) {
	all := map[string]Entry{}
	for name, e := range builtIn {
		if _, ok := e.Message[lang]; ok {
			all[name] = e.clone()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if err := CheckTemplate(name, own[name], lang); err != nil {
			return nil, fmt.Errorf("pumpkin: template %q: %s", name, err.Detail)
		}
		all[name] = own[name].clone()
	}
	for name, e := range all {
		e.Template = name
		all[name] = e
	}
	return all, nil
}

// CheckTemplate returns why e cannot be the prepared text called name where lang is the default language, or nil.
func CheckTemplate(name string, e Entry, lang string) *Refusal {
	if !isName(name) {
		return refuse(InvalidField, "the name must be 1 to %d letters, digits, '.', '_' or '-', beginning with a letter or digit", maxName)
	}
	if !e.StartsAt.IsZero() || e.Reason != "" || e.Ticket != "" {
		return refuse(InvalidField, "a start, a reason and a ticket belong to the occasion; leave them out")
	}
	e.Reason = "prepared"
	refusal, _ := errors.AsType[*Refusal](e.check(name, lang))
	return refusal
}

// clone returns e with maps of its own.
func (e Entry) clone() Entry {
	e.Message, e.Features = maps.Clone(e.Message), maps.Clone(e.Features)
	return e
}

// Template returns the prepared text called name, as an Entry that lacks a Reason, and whether there is one. The caller may
// change it.
func (p *Pumpkin) Template(name string) (Entry, bool) {
	e, ok := p.templates[name]
	return e.clone(), ok
}

// Templates returns the names of all prepared texts, in order.
func (p *Pumpkin) Templates() []string { return slices.Sorted(maps.Keys(p.templates)) }
