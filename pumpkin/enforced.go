package pumpkin

import (
	"fmt"
	"slices"
	"strings"
)

// KnowFeatures is told which features requests can be refused for, so that a write that names another one is warned about: a slip of
// the pen would switch nothing off. A shedder tells it when it is made and when it is reloaded. What was told before stays known.
// Before the first call nothing is warned about.
func (p *Pumpkin) KnowFeatures(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append(slices.Clone(p.enforced), names...)
	slices.Sort(all)
	if p.enforced = slices.Compact(all); p.enforced == nil {
		p.enforced = []string{}
	}
}

// unenforced says which features of an entry no route has, or nothing.
func (p *Pumpkin) unenforced(e Entry) (warning string) {
	p.mu.Lock()
	known := p.enforced
	p.mu.Unlock()
	if known == nil {
		return ""
	}
	var lost []string
	for name := range e.Features {
		if name != Everything && !slices.Contains(known, name) {
			lost = append(lost, name)
		}
	}
	if lost == nil {
		return ""
	}
	slices.Sort(lost)
	have := "no route has a feature"
	if len(known) > 0 {
		have = "routes have " + strings.Join(known[:min(len(known), 20)], ", ")
	}
	return fmt.Sprintf("no route here has the feature %s, so that only pages and clients that ask for it heed it; %s", strings.Join(lost, ", "), have)
}
