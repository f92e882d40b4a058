// Command redis shows one quota for three servers. It starts a Redis of its own and three instances of a small app that share
// it, and lets clients hop between them: first with Redis, then while it is away, then when it is back. It ends by itself.
//
//	go run ./examples/redis
//	go run ./examples/redis -ways    # exact, by lease and asynchronously: how often each asks Redis, and what it admits
//
// It needs the program redis-server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ways := flag.Bool("ways", false, "play the ways of sharing a limit that many want at once, instead")
	pause := flag.Duration("pause", time.Second, "how long to rest between the acts")
	flag.Parse()
	if flag.NArg() > 0 || *pause < 0 {
		fmt.Fprintln(os.Stderr, "redis: takes no arguments beside its flags, and no -pause below 0; run with -h for the options")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	play := run
	if *ways {
		play = runWays
	}
	err := play(ctx, os.Stdout, *pause)
	switch {
	case err == nil:
		return
	case ctx.Err() != nil:
		fmt.Println("\nInterrupted: everything is stopped.")
		os.Exit(130)
	}
	fmt.Fprintln(os.Stderr, "redis:", err)
	if errors.Is(err, errNotInstalled) {
		os.Exit(2)
	}
	os.Exit(1)
}

// run plays the three acts. Whatever it starts has ended when it returns.
func run(ctx context.Context, out io.Writer, pause time.Duration) (err error) {
	redis, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.remove()
	s := &story{ctx: ctx, out: out}
	defer s.close()
	if err := s.start(settings, redis.addr); err != nil {
		return err
	}
	s.say("One Redis on %s, and three instances of an app on it.", redis.addr)
	s.say("Each client may send 30 requests at once, to whichever instance.")

	s.act("With Redis there is one quota")
	s.hop("ann", 40)
	s.rest(pause)

	s.act("Redis is killed")
	redis.kill()
	s.say("Now every instance decides alone, with a third of the quota (on_failure: local).")
	s.hop("bob", 40)
	s.say("Ann has used hers up. The instances know that, so the outage gives her nothing:")
	s.hop("ann", 9)
	s.rest(pause)

	s.act("Redis comes back")
	if err := errors.Join(s.err, redis.launch(ctx)); err != nil {
		return err
	}
	s.awaitUp()
	s.say("It had written down what Ann used. Nobody forgets:")
	s.hop("ann", 9)
	s.say("What Bob got meanwhile it never heard of; so an outage can cost one quota, and no more:")
	s.hop("bob", 40)
	return s.err
}
