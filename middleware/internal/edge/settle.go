package edge

import (
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/spillway-go/spillway/shed"
)

// ResultOf is the default reading of a status for limits that count only successes or only failures. What the service itself
// failed at (5xx) is neither.
func ResultOf(status int) shed.Result {
	switch {
	case status < 400:
		return shed.Succeeded
	case status < 500:
		return shed.Failed
	}
	return shed.NoResult
}

// settle brings what the request was charged in line with how it ended.
func (v *Visit) settle(r *http.Request, status int) {
	if v.rec.status != 0 {
		status = int(v.rec.status)
	}
	if status == 0 {
		if r.Context().Err() != nil {
			return // nobody knows what would have been said
		}
		status = http.StatusOK
	}
	end := shed.Ending{Cost: v.rec.cost.Load(), Result: ResultOf(status)}
	if v.body != nil {
		end.Amounts = append(end.Amounts, shed.Amount{Unit: shed.RequestBytes, N: v.body.read.Load()})
	}
	if o := v.rec.rarities().out; o != nil && o.bytes != nil && o.bytes.Paid > 0 {
		end.Amounts = append(end.Amounts, shed.Amount{Unit: shed.ResponseBytes}) // not even the first byte was written
	}
	if settle := v.rec.edge.settle; settle != nil {
		settle(r, status, &end)
	}
	v.rec.permit.Settle(end)
}

// counted is a body that counts what is read of it.
type counted struct {
	io.ReadCloser
	read atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// takeCost reads, and removes, the field in which the handler says what the request weighed.
func takeCost(h http.Header, field string) int64 {
	lines := h[field]
	if len(lines) == 0 {
		return 0
	}
	delete(h, field)
	n, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return weighed(n)
}
