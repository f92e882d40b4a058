package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/spillway-go/spillway/examples/demo/internal/load"
	"github.com/spillway-go/spillway/examples/internal/operate"
	"github.com/spillway-go/spillway/pumpkin"
)

// buttons are what the page can press: POST /demo/NAME.
var buttons = []string{"burst", "orders", "overload", "pumpkin"}

// demoItem is the pumpkin item that the button raises and lowers.
const demoItem = "demo"

// runLoad plays a plan; load.Run does, in a child process.
type runLoad func(ctx context.Context, p load.Plan) (load.Report, error)

// controls is behind the page's buttons. They need no token, so they exist on a loopback listener only, answer nobody but
// pages that this very listener served, and can start nothing but the plans below, one at a time.
type controls struct {
	addr    string // of the public listener
	pumpkin *pumpkin.Pumpkin
	log     *slog.Logger
	play    runLoad

	ctx    context.Context // ends the load that is running
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	running string // the button whose load is running, or ""
	text    string // what came of the last one, for people
}

func newControls(addr string, p *pumpkin.Pumpkin, log *slog.Logger, play runLoad) *controls {
	c := &controls{addr: addr, pumpkin: p, log: log, play: play}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// plan returns what a button sends.
func (c *controls) plan(button string) (load.Plan, bool) {
	p := load.Plan{Addr: c.addr, Method: http.MethodGet, Path: "/api/items", Keys: 1, KeyPrefix: "button-" + button}
	switch button {
	case "burst":
		p.Count, p.Detail = 25, true
	case "orders":
		p.Method, p.Path, p.Count, p.Rate, p.Detail = http.MethodPost, "/api/orders", 15, 200, true
	case "overload":
		p.Count, p.Rate, p.Keys = 60_000, 4000, 2000
	default:
		return p, false
	}
	return p, true
}

// handler serves the buttons.
func (c *controls) handler() http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusForbidden, "The buttons answer only to the demo's own page.")
	}))
	return origins.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !operate.Loopback(r.Host) {
			// Another site's name may resolve to this machine; then the browser thinks that its page is ours.
			problem(w, http.StatusForbidden, "The buttons answer only under localhost or a loopback address.")
			return
		}
		button := path.Base(r.URL.Path)
		if button == "pumpkin" {
			c.toggle(w, r)
			return
		}
		plan, ok := c.plan(button)
		switch {
		case !ok:
			problem(w, http.StatusNotFound, "There is no such button.")
		case !c.start(button, plan):
			problem(w, http.StatusConflict, "Something is running already; wait until it is done.")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
}

// start plays plan in the background, unless something is being played.
func (c *controls) start(button string, plan load.Plan) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != "" || c.ctx.Err() != nil {
		return false
	}
	c.running, c.text = button, "Running: "+button+" …"
	c.wg.Go(func() {
		report, err := c.play(c.ctx, plan)
		text := outcome(button, report)
		if err != nil {
			text = "The load could not be made: " + err.Error()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running, c.text = "", text
	})
	return true
}

// state returns what is being played and what to say about it.
func (c *controls) state() (running, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.text
}

// close ends what is being played and waits for its end.
func (c *controls) close() {
	c.mu.Lock() // so that start has either added its load to wg or will see that it is over
	c.cancel()
	c.mu.Unlock()
	c.wg.Wait()
}

// toggle raises or lowers the demo's pumpkin item: as the form says, and without one the other way than it is.
func (c *controls) toggle(w http.ResponseWriter, r *http.Request) {
	var on bool
	var err error
	if r.ContentLength == 0 {
		var was bool
		was, err = c.pumpkin.Clear("page", demoItem)
		on = !was
	} else {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
		if on, err = strconv.ParseBool(r.PostFormValue("on")); err != nil {
			problem(w, http.StatusBadRequest, "Send on=true or on=false as a form, or nothing for the other way.")
			return
		}
	}
	if on && err == nil {
		err = c.pumpkin.Put("page", demoItem, pumpkin.Entry{
			Severity: pumpkin.Major,
			Message: map[string]string{
				"en": "Reports are switched off for the moment. Everything else works.",
				"de": "Berichte sind im Augenblick abgeschaltet. Alles andere geht.",
			},
			Sticky:   true,
			Features: map[string]pumpkin.Feature{featureReports: {Off: 1}},
			TTL:      15 * time.Minute,
			Reason:   "the button on the demo's page",
		})
	} else if err == nil {
		_, err = c.pumpkin.Clear("page", demoItem)
	}
	if err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// outcome says in a sentence what came of a button's load.
func outcome(button string, r load.Report) string {
	ms := func(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }
	s := fmt.Sprintf("%s: %d sent, %d served (half within %d ms, 99 %% within %d ms)", button, r.Sent, r.OK(), ms(r.Success.P50), ms(r.Success.P99))
	if n := r.Statuses[http.StatusTooManyRequests]; n > 0 {
		s += fmt.Sprintf(", %d refused with 429", n)
		for _, shot := range r.Shots {
			if shot.Status == http.StatusTooManyRequests {
				s += fmt.Sprintf(" (“come back in %d s”)", shot.RetryAfter)
				break
			}
		}
	}
	if n := r.Statuses[http.StatusServiceUnavailable]; n > 0 {
		s += fmt.Sprintf(", %d refused with 503", n)
	}
	if r.Errors > 0 {
		s += fmt.Sprintf(", %d without an answer", r.Errors)
	}
	return s + "."
}

// problem answers with an RFC 9457 document.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
}
