package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// job is one run of a script and what became of it.
type job struct {
	script *script
	keys   int
	args   []any // the first three places are for the command, the script and the number of keys
	texts  bool  // the answer is a list of texts, and nothing of another type

	cmd redis.Cmder
	err error
}

// once is a command that is never sent a second time after it may have been carried out, by no kind of client.
type once struct{ *redis.Cmd }

// NoRetry tells the client so.
func (once) NoRetry() bool { return true }

// texts is once with an answer that costs less to take apart.
type texts struct{ *redis.StringSliceCmd }

// NoRetry tells the client that it must not be sent again.
func (texts) NoRetry() bool { return true }

// command makes what is sent: the digest of the script, or its text.
func (j *job) command(ctx context.Context, text bool) redis.Cmder {
	j.args[0], j.args[1], j.args[2] = "evalsha", j.script.digest, j.keys
	if text {
		j.args[0], j.args[1] = "eval", j.script.text
	}
	if j.texts {
		j.cmd = texts{redis.NewStringSliceCmd(ctx, j.args...)}
	} else {
		j.cmd = once{redis.NewCmd(ctx, j.args...)}
	}
	return j.cmd
}

// list returns the answer as it is.
func (j *job) list() ([]any, error) {
	if j.err != nil {
		return nil, j.err
	}
	return list(j.cmd.(once))
}

// list returns the list that a script answers.
func list(cmd once) ([]any, error) {
	answer, ok := cmd.Val().([]any)
	if !ok {
		return nil, fmt.Errorf("the script answered %T, want a list", cmd.Val())
	}
	return answer, nil
}

// strings returns the answer in texts.
func (j *job) strings() ([]string, error) {
	if j.err != nil {
		return nil, j.err
	}
	return j.cmd.(texts).Val(), nil
}

// run runs a script. Args begins with three places for the command, the script and the number of keys.
func (s *Store) run(ctx context.Context, sc *script, keys int, args []any) ([]any, error) {
	j := job{script: sc, keys: keys, args: args}
	s.send(ctx, &j)
	return j.list()
}

// moving is how long a key takes to move that is on its way, at first guess.
const moving = time.Millisecond

// send does one job. That the server does not know the script means that nothing happened, so that sending its text is no
// second time. Nor is trying again while a key moves between servers of a cluster.
func (s *Store) send(ctx context.Context, j *job) {
	for pause := moving; ; pause *= 2 {
		j.err = s.client.Process(ctx, j.command(ctx, false))
		if j.err != nil && redis.HasErrorPrefix(j.err, "NOSCRIPT") {
			j.err = s.client.Process(ctx, j.command(ctx, true))
		}
		if j.err == nil || !redis.IsTryAgainError(j.err) || pause > 32*moving {
			return
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// perform does jobs in one message.
func (s *Store) perform(ctx context.Context, jobs []*job) {
	switch len(jobs) {
	case 0:
		return
	case 1:
		s.send(ctx, jobs[0])
		return
	}
	pipe := s.client.Pipeline()
	for _, j := range jobs {
		j.err = pipe.Process(ctx, j.command(ctx, false)) // queues it
	}
	_, lost := pipe.Exec(ctx)
	for _, j := range jobs {
		if j.err != nil {
			continue
		}
		j.err = j.cmd.Err()
		switch {
		case j.err == nil && j.unanswered():
			j.err = lost // the message was cut before this answer
		case j.err != nil && (redis.HasErrorPrefix(j.err, "NOSCRIPT") || redis.IsTryAgainError(j.err)):
			s.send(ctx, j) // nothing happened yet
		}
	}
}

// unanswered reports whether a job that did not fail has no answer either.
func (j *job) unanswered() bool {
	if j.texts {
		return j.cmd.(texts).Val() == nil
	}
	return j.cmd.(once).Val() == nil
}
