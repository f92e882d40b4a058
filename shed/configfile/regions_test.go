package configfile

import (
	"context"
	"testing"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/shed"
)

// TestRegionsShareALimitWhenTheFileSaysSo goes the whole way: file, three Redis, Shedder, debug view.
func TestRegionsShareALimitWhenTheFileSaysSo(t *testing.T) {
	home := redistest.Single(t)
	var all []*shed.Shedder
	for _, name := range []string{"eu", "us"} {
		own := redistest.Single(t)
		s, _ := instance(t, `
limits:
  - {name: bucket, token_bucket: {capacity: 60, refill: 1/h}, per: global}
  - {name: strict, fixed_window: {quota: 1000/day}, per: global, guarantee: strict}
store:
  redis: {url: "redis://`+own.Addr+`/0", instances: 1, timeout: 5s}
  regions: {region: `+name+`, weights: {eu: 2, us: 1}, home: "redis://`+home.Addr+`/0", timeout: 5s, lease: 10ms}
`)
		all = append(all, s)
	}
	admitted := [2]int{}
	for i, s := range all { // the first has its own 20 and all 30 that are lent, the second its own 10
		for range 70 {
			if p, err := s.Admit(context.Background(), shed.Request{}); err == nil {
				p.Done(shed.Success)
				admitted[i]++
			}
		}
	}
	if admitted[0] > 50 || admitted[0] < 45 || admitted[1] < 10 || admitted[0]+admitted[1] > 60 {
		t.Errorf("%d admitted, want 50 and 10", admitted)
	}
	if h := all[0].Status().Store.Home; h == nil || h.Region != "eu" || h.State != "up" || h.Borrowed == 0 {
		t.Errorf("%+v", h)
	}
}
