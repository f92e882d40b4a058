package tour

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
)

// burstPlan sends a quarter more at once than a client's bucket holds.
var burstPlan = load.Plan{Method: http.MethodGet, Path: "/api/items", Count: bucket * 5 / 4, Keys: 1, Detail: true}

// burst: a client's bucket holds 20, and the refusal says truly when to come back.
func (t *tour) burst(ctx context.Context) {
	t.title("One client sends 25 requests at once. It may send 20, and then 5 a second.")
	reports, client, err := t.load(ctx, "burst", 0, burstPlan)
	answered := time.Now()
	if err != nil {
		t.check("the load can be made", "", err)
		return
	}
	r := reports[0]
	t.check("20 pass, 5 are refused with 429: the client's quota is used up", fmt.Sprintf("%d passed, %d refused", r.OK(), r.Statuses[429]), checkBurst(r))
	wait, err := retryAfter(r)
	t.check("each refusal says when to come back", fmt.Sprintf("Retry-After: %d", wait/time.Second), err)
	if err != nil {
		return
	}
	if err = pause(ctx, time.Until(answered.Add(wait))); err == nil {
		err = t.expect(ctx, http.MethodGet, "/api/items", client, http.StatusOK)
	}
	t.check("and that is the truth: exactly so much later the client is served", "", err)
}

// steady: what flows back into an empty bucket may be used as it comes.
func (t *tour) steady(ctx context.Context) {
	t.title("Another client has used up its quota, too, and from then on sends 5 requests a second.")
	stream := load.Plan{Method: http.MethodGet, Path: "/api/items", Count: 20, Rate: refill, Keys: 1}
	// The first token is back after a fifth of a second, and then one for each request.
	reports, _, err := t.load(ctx, "steady", time.Second/refill, burstPlan, stream)
	if err != nil {
		t.check("the load can be made", "", err)
		return
	}
	emptied, r := reports[0], reports[1]
	t.check("the quota is used up", fmt.Sprintf("%d of %d passed", emptied.OK(), emptied.Sent), checkBurst(emptied))
	t.check("every request of the steady stream passes", fmt.Sprintf("%d of %d", r.OK(), r.Sent), checkAllPass(r, http.StatusOK))
}

// orders: what is too fast is delayed, not dropped.
func (t *tour) orders(ctx context.Context) {
	t.title("One client sends 15 orders within 70 ms. Orders run 20 a second; the others wait for their turn.")
	reports, _, err := t.load(ctx, "orders", 0, load.Plan{
		Method: http.MethodPost, Path: "/api/orders", Count: 15, Rate: 200, Keys: 1, Timeout: 5 * time.Second, Detail: true,
	})
	if err != nil {
		t.check("the load can be made", "", err)
		return
	}
	r := reports[0]
	t.check("none is lost", fmt.Sprintf("%d of %d done", r.OK(), r.Sent), checkAllPass(r, http.StatusCreated))
	t.check("they keep their order", "", checkInOrder(r))
	t.check("they run 20 a second, nobody ahead of its turn", fmt.Sprintf("the last was done after %v", r.Success.Max.Round(time.Millisecond)), checkTurns(r))
}

// overload: five times the capacity, from two thousand clients none of whom is over its quota.
func (t *tour) overload(ctx context.Context) {
	t.title("2,000 clients send 4,000 requests a second for 10 seconds: five times what the app can do.")
	reports, _, err := t.load(ctx, "overload", 0, load.Plan{Method: http.MethodGet, Path: "/api/items", Count: 40_000, Rate: 4000, Keys: 2000})
	if err != nil {
		t.check("the load can be made", "", err)
		return
	}
	r := reports[0]
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1000) }
	t.check("the app goes on serving what it can, in time", fmt.Sprintf("%.0f per second within 250 ms", goodputOf(r)), checkGoodput(r))
	t.check("who is served is served quickly", fmt.Sprintf("half within %s, 99 %% within %s", ms(r.Success.P50), ms(r.Success.P99)), checkAdmitted(r))
	t.check("all others are told at once that the app is full: 503", fmt.Sprintf("%d refused, half within %s", r.Statuses[503], ms(r.Refused.P50)), checkShed(r))
	t.check("nobody else suffers for it later: a request now is served", "", t.expect(ctx, http.MethodGet, "/api/items", "tour-after", http.StatusOK))
}
