package gameday

import (
	"context"
	"fmt"
	"time"
)

// spare is by how much a gateway may hold more than after its start: connections to Redis that it keeps, at most 32 for quotas and 4
// for the pumpkin, and those to the sentinels.
const spare = 40

func eveningAct() *act {
	return &act{
		name: "evening", title: "Quiet evening", cuts: true,
		about:  "Everybody goes home.",
		expect: "Nothing is left over: nothing in flight, waiting or parked, no stream, Redis decides, nobody is told anything, and no goroutine or descriptor more than after the start.",
		play: func(ctx context.Context, s *scene) error {
			d := s.day
			d.streams.stop()
			d.crowd.hangUp()
			if _, err := d.service.control("hangup", nil); err != nil {
				return err
			}
			for _, g := range d.gateways {
				for begin := time.Now(); ; {
					look := &scene{}
					look.leftOver(g)
					if _, left := look.failed(); !left || time.Since(begin) > 20*time.Second || !pause(ctx, 100*time.Millisecond) {
						s.checks = append(s.checks, look.checks...)
						break
					}
				}
			}
			c, err := d.service.counts()
			if err != nil {
				return err
			}
			s.expects("inside of the service", c.Waiting == 0, fmt.Sprint(c.Waiting), "0")
			for _, g := range d.gateways { // one that the race detector has complained of exits with 66
				err := g.stop()
				s.expects(g.name+" ends when asked", err == nil, ending(err), "exit 0")
			}
			return nil
		},
	}
}

// leftOver asks that a gateway holds nothing more than after its start.
func (s *scene) leftOver(g *gateway) {
	v, err := g.look()
	var held resources
	if err == nil {
		held, err = g.holds()
	}
	if err != nil {
		s.expects(g.name+" says what it holds", false, err.Error(), "no error")
		return
	}
	st, streams := &v.Shed, v.Shed.Streams+v.Gateway.Streams
	for _, b := range st.Budgets {
		streams += b.InUse
	}
	s.expects(g.name+": in flight, waiting, parked, streams", st.InFlight+st.Waiting+st.Parked+streams == 0,
		fmt.Sprintf("%d, %d, %d, %d", st.InFlight, st.Waiting, st.Parked, streams), "0")
	s.expects(g.name+": store", st.Store.State == "up", st.Store.State, "up")
	s.expects(g.name+": goroutines", held.goroutines <= g.atRest.goroutines+spare/4, fmt.Sprintf("%d, after the start %d", held.goroutines, g.atRest.goroutines), "≤ %d more", spare/4)
	s.expects(g.name+": descriptors", held.files <= g.atRest.files+spare, fmt.Sprintf("%d, after the start %d", held.files, g.atRest.files), "≤ %d more: connections to Redis that it keeps", spare)
	var dashboard string
	err = g.get("/dashboard/", &dashboard)
	s.expects(g.name+": the live page is there", err == nil && dashboard != "", fmt.Sprintf("%d bytes", len(dashboard)), "> 0")
}
