package configfile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
)

// unshared warns about the keys of a limit that are about a store, where there is none: who writes them expects one quota for
// several instances.
func (c *Config) unshared(p *problems, limit string) {
	if c.Store.Redis.URL != "" || c.Shed.Store != nil {
		return
	}
	for _, key := range []string{"on_failure", "guarantee", "sharing", "sub_buckets"} {
		if v, there := p.at(limit + "." + key); there {
			v.warn("does nothing without store, and each instance has the whole quota", "add store: {redis: {url: ...}}, or remove it")
		}
	}
}

// storeEffects finds what a store is told and never asked for. What a reload may bring is only warned of.
func (c *Config) storeEffects(p *problems) {
	r := c.Store.Redis
	if r.URL == "" {
		return
	}
	uses := func(s limits.Sharing) bool {
		return r.Sharing == s || slices.ContainsFunc(c.Shed.Limits, func(l shed.Limit) bool { return l.Sharing == s })
	}
	if v, there := p.at("store.redis.lease"); there && !uses(limits.SharedByLease) {
		v.warn("does nothing while nothing is shared by lease", "add sharing: lease to a limit or here, or remove it")
	}
	if v, there := p.at("store.redis.merge_every"); there && !uses(limits.SharedAsync) {
		v.warn("does nothing while nothing is shared by async", "add sharing: async to a limit or here, or remove it")
	}
	kept := func(l shed.Limit) bool { _, counted := l.Rule.(limits.InFlight); return !counted }
	if v, there := p.at("store"); there && !slices.ContainsFunc(c.Shed.Limits, kept) {
		v.warn("keeps nothing, for there is no limit over time", "add one under limits, or remove the section")
	}
}

// pumpkinEffects finds signals that never rise, and features that no route has where others have some: without any they are the pages'.
func (c *Config) pumpkinEffects(p *problems) {
	var features []string
	for _, r := range c.Shed.Routes {
		if r.Feature != "" {
			features = append(features, r.Feature)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Pumpkin.Templates)) {
		place := join("pumpkin.templates", name) + ".features"
		v, there := p.at(place)
		for _, feature := range slices.Sorted(maps.Keys(c.Pumpkin.Templates[name].Features)) {
			if there && feature != "*" && len(features) > 0 && !slices.Contains(features, feature) {
				v.warn(bare(feature)+" is the feature of no route, so that only pages can leave it out", "give a route feature: "+bare(feature)+", or check how it is written")
			}
		}
	}
	unwatched := map[string]bool{
		"memory_stall": c.Shed.Health.MemoryStall == (health.Thresholds{}),
		"host_cpu":     c.Shed.Health.HostCPU == (health.Thresholds{}),
	}
	for i, rule := range c.Pumpkin.Auto {
		for _, signal := range slices.Sorted(maps.Keys(rule.When)) {
			v, there := p.at(join(fmt.Sprintf("pumpkin.auto[%d].when", i), signal))
			switch {
			case !there:
			case unwatched[signal]:
				v.warn("is not watched, so that it never rises", "add "+signal+": {} to health")
			case signal == signalQueue && c.Shed.Queue.Capacity < 0:
				v.warn("never rises, for with queue.capacity: 0 nobody waits", "use shed, the share of requests that are turned away")
			case c.Shed.Health.Off && signal != signalQueue && signal != signalShed:
				v.warn("is not watched, for this program has health switched off", "add health: {}, or remove it")
			}
		}
	}
}
