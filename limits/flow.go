package limits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// ErrNoFlow is what a Flow returns whose rules let nothing through, ever: one of them has a capacity of 0.
var ErrNoFlow = errors.New("limits: a rule of the flow lets nothing through")

// Flow slows down what passes through it to what rules allow: the bytes of a stream, or its messages. Make one with NewFlow.
// It may be used by several streams at once, which then share what the rules allow.
//
// With a Delay the turns are first come, first served, and exact. With any other rule what does not fit waits until it
// would, and then tries again, so that streams of one key compete.
type Flow struct {
	// BeforeWait, if set before the first use, is called each time something is about to wait: whoever holds a place for it
	// can let others have that meanwhile.
	BeforeWait func()

	store   Store
	charges []Charge
	step    int64 // the most that can pass at once
}

// NewFlow returns a flow that charges every unit to all of the charges, whose own costs do not matter. It refuses rules that
// count what is in flight, for that ends with a refund only.
func NewFlow(store Store, charges ...Charge) (*Flow, error) {
	f := &Flow{store: store, charges: slices.Clone(charges), step: Exact}
	for i := range f.charges {
		c := &f.charges[i]
		c.Cost = 0
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("limits: charge %d of a flow: %w", i, err)
		}
		if _, counts := c.Policy.rule.(InFlight); counts {
			return nil, fmt.Errorf("limits: charge %d of a flow: policy %q counts what is in flight; use a rule over time", i, c.Policy.name)
		}
		if !c.Shadow {
			f.step = min(f.step, c.Policy.Quota())
		}
	}
	return f, nil
}

// Pass lets n units through, and returns when they may. More than the smallest quota pass in parts. The error wraps ctx's,
// or context.DeadlineExceeded, at once, if ctx will not last until the turn; what has passed before stays charged, and
// passed says how much that is. It is ErrNoFlow if nothing can ever pass.
func (f *Flow) Pass(ctx context.Context, n int64) (passed int64, err error) {
	passed, _, err = f.pass(ctx, n)
	return passed, err
}

// pass is Pass, and returns the decision about the last part.
func (f *Flow) pass(ctx context.Context, n int64) (passed int64, last Decision, err error) {
	if f.step == 0 && n > 0 {
		return 0, last, ErrNoFlow
	}
	charges := slices.Clone(f.charges)
	for passed < n {
		part := min(n-passed, f.step)
		for i := range charges {
			charges[i].Cost = part
		}
		d, err := waitAfter(ctx, f.store, charges, f.waits)
		if err != nil {
			return passed, last, err
		}
		if d.Allowed {
			passed, last = passed+part, d
			continue
		}
		b := d.Binding()
		if b.Reason == CostTooLarge { // the turns of a store that is not ours
			return passed, last, ErrNoFlow
		}
		f.waits()
		if err := pause(ctx, max(b.RetryAfter, time.Microsecond)); err != nil {
			return passed, last, err
		}
	}
	return passed, last, nil
}

// giveBack returns n of what a decision of pass has charged, which has not passed after all.
func (f *Flow) giveBack(ctx context.Context, d Decision, n int64) error {
	for i := range d.Len() {
		v := d.At(i)
		v.Cost = min(v.Cost, n)
	}
	return f.store.Refund(context.WithoutCancel(ctx), time.Now(), d)
}

func (f *Flow) waits() {
	if f.BeforeWait != nil {
		f.BeforeWait()
	}
}

// Reader reads from another reader at the pace of a flow whose units are bytes: what was read is handed on when it may pass.
// So who sends too fast finds its connection full. Its Read returns the flow's errors; what was read then is lost.
type Reader struct {
	ctx  context.Context
	from io.Reader
	flow *Flow
}

// NewReader returns a Reader that gives up when ctx ends.
func NewReader(ctx context.Context, from io.Reader, flow *Flow) *Reader {
	return &Reader{ctx, from, flow}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if int64(len(p)) > r.flow.step {
		p = p[:max(r.flow.step, 1)]
	}
	n, err := r.from.Read(p)
	if n > 0 {
		if _, late := r.flow.Pass(r.ctx, int64(n)); late != nil {
			return 0, late
		}
	}
	return n, err
}

// Writer writes to another writer at the pace of a flow whose units are bytes. What is charged is charged before it is
// written, and given back if it was not.
type Writer struct {
	// Paid is how many bytes have been charged before, and pass freely.
	Paid int64

	ctx  context.Context
	to   io.Writer
	flow *Flow
}

// NewWriter returns a Writer that gives up when ctx ends.
func NewWriter(ctx context.Context, to io.Writer, flow *Flow) *Writer {
	return &Writer{ctx: ctx, to: to, flow: flow}
}

// Write implements io.Writer. It returns the flow's errors, and how much was written before.
func (w *Writer) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		part := p[:min(int64(len(p)), max(w.flow.step, 1))]
		free := min(w.Paid, int64(len(part)))
		_, d, err := w.flow.pass(w.ctx, int64(len(part))-free)
		if err != nil {
			return written, err
		}
		w.Paid -= free
		n, err := w.to.Write(part)
		written += n
		if unwritten := min(int64(len(part)-n), int64(len(part))-free); unwritten > 0 {
			err = errors.Join(err, w.flow.giveBack(w.ctx, d, unwritten))
		}
		if err != nil {
			return written, err
		}
		p = p[len(part):]
	}
	return written, nil
}
