package redisstore

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"strconv"

	"github.com/spillway-go/spillway/limits"
)

// batch is queries that one run of a script decides, which costs Redis less than half of what a run for each would. The
// script is for debts alone, which most balances are, and gives up any whose rule has changed since, or that are none: that is
// seen in the answer.
//
// The answer is each balance as it was found, in the very bytes that Redis keeps, and this process works out the verdicts.
type batch struct {
	queries []*query
	blocks  []block
	job     job
}

// block is rows of a query that ask the same: to the script they are one decision that is asked for so often.
type block struct {
	c        *query
	from, to int
}

//go:embed script/batch.lua
var batchText string

var batches = newScript(batchText)

// batched makes batches of those queries that are fast, and returns the others too.
func (s *Store) batched(queries []*query) (made []*batch, others []*query) {
	var last *batch
	for _, c := range queries {
		if !c.fast() {
			others = append(others, c)
			continue
		}
		if last == nil || s.apart() || last.queries[0].rows[0].now != c.rows[0].now {
			last = new(batch)
			made = append(made, last)
		}
		last.queries = append(last.queries, c)
	}
	return made, others
}

// settle leaves in each query how it went.
func (b *batch) settle(s *Store) {
	err := b.job.err
	if len(b.queries) > 1 && has(err, "CROSSSLOT") { // a cluster behind a client that does not look like one; nothing has happened
		s.scattered.Store(true)
		for _, c := range b.queries {
			c.again = true
		}
		return
	}
	if err == nil {
		err = b.read()
	}
	for _, c := range b.queries {
		c.err = err
		c.again = err == nil && c.slow
	}
}

// apart reports whether different clients' keys cannot be in one call.
func (s *Store) apart() bool { return s.cluster || s.scattered.Load() }

// fill sets the arguments.
func (b *batch) fill(s *Store) {
	args := make([]any, 3, 5+len(b.queries))
	var runs []byte
	last := 0 // where the last run begins
	for _, c := range b.queries {
		for at := 0; at < len(c.rows); {
			end := c.alike(at)
			b.blocks = append(b.blocks, block{c, at, end})
			row, begin, times := c.rows[at], len(runs), end-at
			if !c.take {
				times = 0
			}
			runs = row.appendRun(runs, times)
			if begin > 0 && oneMore(runs[last:begin], runs[begin:]) {
				runs = runs[:begin]
			} else {
				last = begin
			}
			for i := range row.charges {
				args = append(args, s.key(row.charges[i].Policy.Name(), row.charges[i].Key))
			}
			at = end
		}
	}
	keys := len(args) - 3
	args = append(args, runs)
	if now := b.queries[0].rows[0].now; now != "" {
		args = append(args, now)
	}
	b.job = job{script: batches, keys: keys, args: args, texts: true}
}

// appendRun appends a run of one decision, as the script takes it apart.
func (q *question) appendRun(b []byte, times int) []byte {
	b = append(b, byte(len(q.charges)), 0, 0, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(times))
	for i := range q.charges {
		c := &q.charges[i]
		b = appendLong(append(b, q.rules[i].packed...), min(c.Cost, dear))
		if c.Shadow {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// oneMore lets a run have one decision more, if the next run is only that.
func oneMore(run, next []byte) bool {
	const how = 4 // bytes, of which the last three count
	if run[0] != next[0] || !bytes.Equal(run[how:], next[how:]) {
		return false
	}
	n := binary.BigEndian.Uint32(run) & 0xffffff
	if n == 0xffffff {
		return false
	}
	binary.BigEndian.PutUint32(run, uint32(run[0])<<24|n+1)
	return true
}

// read works out the decisions from the answer, and holds them against what the script did.
func (b *batch) read() error {
	reply, err := b.job.strings()
	if err != nil {
		return err
	}
	if len(reply) != 2+b.job.keys {
		return strange(reply)
	}
	now, err := strconv.ParseInt(reply[0], 10, 64)
	granted, err2 := strconv.ParseInt(reply[1], 10, 64)
	if err != nil || err2 != nil || !inExact(now) {
		return strange(reply)
	}
	values := reply[2:]
	for _, p := range b.blocks {
		row := p.c.rows[p.from]
		var few [inline]limits.Account
		accounts := few[:0]
		for i := range row.charges {
			if values[i] == elsewhere {
				p.c.slow = true
				continue
			}
			owed, last, since, ok := decode(values[i], row.rules[i].tag())
			if !ok {
				return strange(values[i])
			}
			accounts = append(accounts, row.charges[i].Policy.Account(owed, last, since, nil))
		}
		values = values[len(row.charges):]
		if p.c.slow {
			continue
		}
		if n := p.c.work(now, accounts, p.from, p.to); p.c.take {
			granted -= n
		}
	}
	if granted != 0 {
		return errDisagree
	}
	return nil
}

// elsewhere is what the script answers for a value that is not for it.
const elsewhere = "?"

// decode returns the numbers in a value that bears a tag. That there is none is a full balance.
func decode(value, tag string) (owed, last, since int64, ok bool) {
	if value == "" {
		return 0, 0, 0, true
	}
	n := len(tag)
	if len(value) < n+14 || len(value) > n+21 || value[:n] != tag {
		return 0, 0, 0, false
	}
	last, owed = number(value[n:n+7]), number(value[n+7:n+14])
	since = last - number(value[n+14:])
	return owed, last, since, inExact(last) && inExact(owed) && inExact(since)
}

func number(s string) (n int64) {
	for i := range len(s) {
		n = n<<8 | int64(s[i])
	}
	return n
}

// appendLong appends a number of at most 56 bits in 7 bytes, most significant first.
func appendLong(b []byte, n int64) []byte {
	return append(b, byte(n>>48), byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}
