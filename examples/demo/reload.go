package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spillway-go/spillway/examples/internal/operate"
	"github.com/spillway-go/spillway/shed/configfile"
)

// load reads the configuration file, which follow then keeps an eye on.
func (d *demo) load(o options) (err error) {
	own := program()
	d.config = &own
	if o.config == "" {
		return nil
	}
	d.watch = &configfile.Watch{Path: o.config, Program: own, Flags: func(c *configfile.Config) {
		if o.admin != "" { // then it makes no difference what the file says about that
			c.Pumpkin.AdminListen = own.Pumpkin.AdminListen
		}
	}}
	d.config, err = d.watch.Load() // an error says path, line, what and how to mend it
	return err
}

// follow takes over what is written into the configuration file from now on.
func (d *demo) follow() {
	if d.watch == nil {
		return
	}
	d.watch.Shedder = d.shedder
	d.watch.Apply = func(was, next *configfile.Config) []string {
		return operate.Polls(d.pumpkin, was.Pumpkin, next.Pumpkin, idle)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.wg.Go(func() { d.watch.Run(ctx) })
	d.wg.Go(func() {
		<-d.stopping
		cancel()
	})
}

// idle is how long clients wait between two polls while all is well: in a demo nobody wants to wait for the first banner, so as long as
// otherwise, unless the file says something else.
func idle(p configfile.Pumpkin) time.Duration { return cmp.Or(p.PollIdle, p.PollAfter) }
