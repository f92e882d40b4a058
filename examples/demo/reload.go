package main

import (
	"context"
	"fmt"

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
		before, after := was.Pumpkin.PollAfter, next.Pumpkin.PollAfter
		if before == after || d.pumpkin.SetPoll(after, after) != nil { // the file has been checked, so only Close refuses
			return nil
		}
		return []string{fmt.Sprintf("pumpkin.poll_after %v -> %v", before, after)}
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.wg.Go(func() { d.watch.Run(ctx) })
	d.wg.Go(func() {
		<-d.stopping
		cancel()
	})
}
