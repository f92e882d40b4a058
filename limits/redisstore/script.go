package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// The scripts. Their arguments are the time in µs, or nothing for the server's; 1 to write what was granted; how many charges
// a row has; seven for each key (see rule); the key of each charge, counted from 1, negative for shadows; and then rows, each a
// decision of its own: how often it is asked for, and the costs. Rows are decided in order and at one time.
//
// The answer is the time, how many rows were granted, and each balance as it was found, counted in the rule that was asked
// about: three numbers, and the charges that it remembers. From that limits.Decide works out every verdict: the script only
// has to know what fits.
var (
	//go:embed script/meters.lua
	metersText string
	//go:embed script/balances.lua
	balancesText string
	//go:embed script/take.lua
	takeText string
	//go:embed script/refund.lua
	refundText string

	meters = newScript(metersText)
	takes  = newScript(balancesText + takeText)
	refund = newScript(balancesText + refundText)
)

// script is a script and the digest by which a server that has seen it knows it.
type script struct{ text, digest string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text)) // the server's choice
	return &script{text, hex.EncodeToString(sum[:])}
}

// once is a command that is never sent a second time after it may have been carried out, by no kind of client.
type once struct{ *redis.Cmd }

// NoRetry tells the client so.
func (once) NoRetry() bool { return true }

// run calls a script. Args begins with three places for the command, the script and the number of keys. That the server does
// not know the script means that nothing happened, so that sending its text is no second time. Nor is trying again while a
// key moves between servers of a cluster.
func (s *Store) run(ctx context.Context, sc *script, keys int, args []any) ([]any, error) {
	pause := moving
	for {
		args[0], args[1], args[2] = "evalsha", sc.digest, keys
		reply, err := s.send(ctx, args)
		if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			args[0], args[1] = "eval", sc.text
			reply, err = s.send(ctx, args)
		}
		if err == nil || !redis.IsTryAgainError(err) || pause > 32*moving {
			return reply, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, err
		}
		pause *= 2
	}
}

// moving is how long a key takes to move that is on its way, at first guess.
const moving = time.Millisecond

func (s *Store) send(ctx context.Context, args []any) ([]any, error) {
	cmd := once{redis.NewCmd(ctx, args...)}
	if err := s.client.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return list(cmd)
}

// list returns the list that a script answers.
func list(cmd once) ([]any, error) {
	answer, ok := cmd.Val().([]any)
	if !ok {
		return nil, fmt.Errorf("the script answered %T, want a list", cmd.Val())
	}
	return answer, nil
}

// decideAll makes several calls in one message, and returns what went wrong with each.
func (s *Store) decideAll(ctx context.Context, batch []*parcel) []error {
	errs := make([]error, len(batch))
	if len(batch) == 1 {
		errs[0] = batch[0].decide(ctx, s)
		return errs
	}
	cmds := make([]once, len(batch))
	pipe := s.client.Pipeline()
	for i, p := range batch {
		p.fill(s)
		p.args[0], p.args[1], p.args[2] = "evalsha", p.script().digest, p.keys
		cmds[i] = once{redis.NewCmd(ctx, p.args...)}
		errs[i] = pipe.Process(ctx, cmds[i]) // queues it
	}
	_, lost := pipe.Exec(ctx)
	for i, p := range batch {
		err := cmds[i].Err()
		switch {
		case errs[i] != nil:
			continue
		case err == nil && cmds[i].Val() == nil:
			err = lost // the message was cut before this answer
		case err != nil && (redis.HasErrorPrefix(err, "NOSCRIPT") || redis.IsTryAgainError(err)):
			errs[i] = p.decide(ctx, s) // nothing happened yet
			continue
		}
		if err == nil {
			var reply []any
			if reply, err = list(cmds[i]); err == nil {
				err = p.settle(ctx, s, reply)
			}
		}
		errs[i] = err
	}
	return errs
}

// numbers reads an answer one after the other, and remembers whether that went wrong.
type numbers struct {
	rest []any
	bad  bool
}

func (n *numbers) next() int64 {
	if len(n.rest) > 0 {
		if x, ok := n.rest[0].(int64); ok {
			n.rest = n.rest[1:]
			return x
		}
	}
	n.bad = true
	return 0
}
