package redisstore

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// The scripts. Their arguments are the time in µs, or nothing for the server's; 1 to write what was granted; how many charges
// a row has; seven for each key (see rule); the key of each charge, counted from 1, negative for shadows; and then rows, each a
// decision of its own: how often it is asked for, and the costs. Rows are decided in order and at one time.
//
// The answer is the time, how many rows were granted, and each balance as it was found, counted in the rule that was asked
// about: three numbers, and the charges that it remembers. From that limits.Decide works out every verdict: the script only
// has to know what fits.
var (
	//go:embed script/balances.lua
	balancesText string
	//go:embed script/take.lua
	takeText string
	//go:embed script/refund.lua
	refundText string

	takes  = newScript(balancesText + takeText)
	refund = newScript(balancesText + refundText)
)

// script is a script and the digest by which a server that has seen it knows it.
type script struct{ text, digest string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text)) // the server's choice
	return &script{text, hex.EncodeToString(sum[:])}
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
