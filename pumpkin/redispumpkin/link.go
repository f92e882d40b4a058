package redispumpkin

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// stored is what is under the key. The zero value is that nothing is.
type stored struct {
	epoch string
	seq   uint64
	text  string // the State as JSON
}

// link is what is asked of Redis, so that all else can be tried in virtual time.
type link interface {
	read(ctx context.Context) (stored, error)
	// swap replaces was by next in one step, unless something else is there.
	swap(ctx context.Context, was, next stored) (bool, error)
	// listen calls hint whenever something may have changed, until ctx ends.
	listen(ctx context.Context, hint func())
	// cast makes ballot that of the instance for so long, and returns the ballots of all that have one. An empty ballot takes it back.
	cast(ctx context.Context, instance, ballot string, ttl time.Duration) (map[string]string, error)
}

// redisLink is the real one.
type redisLink struct {
	client                  redis.UniversalClient
	state, ballots, changes string
}

func newRedisLink(client redis.UniversalClient, namespace string) redisLink {
	prefix := "{pumpkin:" + namespace + "}:" // one slot of a cluster
	return redisLink{client, prefix + "state", prefix + "ballots", prefix + "changes"}
}

// errForeign is what a key that holds something else comes to.
var errForeign = errors.New("redispumpkin: what is stored is not a pumpkin's state")

func (l redisLink) read(ctx context.Context) (stored, error) {
	fields, err := l.client.HMGet(ctx, l.state, "epoch", "rev", "payload").Result()
	if err != nil {
		return stored{}, err
	}
	var texts [3]string
	there := 0
	for i, f := range fields {
		if s, ok := f.(string); ok && i < len(texts) {
			texts[i] = s
			there++
		}
	}
	if there == 0 {
		return stored{}, nil
	}
	seq, err := strconv.ParseUint(texts[1], 10, 64)
	if err != nil || there != len(texts) || seq == 0 || texts[0] == "" {
		return stored{}, errForeign
	}
	return stored{texts[0], seq, texts[2]}, nil
}

// swapScript compares and sets. A hint that may not be published is a hint lost, no reason to leave the script half done.
var swapScript = redis.NewScript(`
local was = redis.call('HMGET', KEYS[1], 'epoch', 'rev')
if (was[1] or '') ~= ARGV[1] or (was[2] or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'epoch', ARGV[3], 'rev', ARGV[4], 'payload', ARGV[5])
redis.pcall('PUBLISH', ARGV[6], ARGV[3] .. ':' .. ARGV[4])
return 1`)

func (l redisLink) swap(ctx context.Context, was, next stored) (bool, error) {
	n, err := swapScript.Run(ctx, l.client, []string{l.state},
		was.epoch, decimal(was.seq), next.epoch, decimal(next.seq), next.text, l.changes).Int()
	return n == 1, err
}

// decimal is seq as the hash has it: nothing for 0.
func decimal(seq uint64) string {
	if seq == 0 {
		return ""
	}
	return strconv.FormatUint(seq, 10)
}

// listen leaves the work of subscribing anew to the client. Whatever comes is a hint, a new subscription above all: what was
// said before it is lost.
func (l redisLink) listen(ctx context.Context, hint func()) {
	sub := l.client.Subscribe(ctx, l.changes)
	defer sub.Close()
	messages := sub.ChannelWithSubscriptions(redis.WithChannelSize(1))
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-messages:
			if !ok {
				return
			}
			hint()
		}
	}
}

// castScript goes by the clock of Redis, the only one that instances have in common.
var castScript = redis.NewScript(`
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + tonumber(ARGV[3])) .. ' ' .. ARGV[2])
  redis.call('PEXPIRE', KEYS[1], 4 * tonumber(ARGV[3]))
end
local all, live = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local ends, ballot = string.match(all[i + 1], '^(%d+) (.*)$')
  if ends and tonumber(ends) > now then
    live[#live + 1] = all[i]
    live[#live + 1] = ballot
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return live`)

func (l redisLink) cast(ctx context.Context, instance, ballot string, ttl time.Duration) (map[string]string, error) {
	pairs, err := castScript.Run(ctx, l.client, []string{l.ballots}, instance, ballot, ttl.Milliseconds()).StringSlice()
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all, nil
}
