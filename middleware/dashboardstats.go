package middleware

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/spillway-go/spillway/shed"
)

// dashboardStats answers the page's polls. Whoever asks, and however often, the work is small: each moment is read and encoded
// once, and an answer copies what is encoded.
type dashboardStats struct {
	shedder  *shed.Shedder
	capacity int
	extra    func() any

	mu      sync.Mutex
	seq     int64                    // of the newest moment
	encoded [shed.MomentsKept][]byte // moments as JSON, by Seq
	rest    []byte                   // the members beside the moments, as of seq, without the last brace
}

func newDashboardStats(cfg DashboardConfig) *dashboardStats {
	return &dashboardStats{shedder: cfg.Shedder, capacity: cfg.Capacity, extra: cfg.Extra}
}

// serve answers with the moments after the one that the page has already.
func (d *dashboardStats) serve(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // anything else is a page that has none
	ticks, rest := d.after(after)
	var body bytes.Buffer
	body.WriteString(`{"ticks":[`)
	body.Write(bytes.Join(ticks, []byte(",")))
	body.WriteString("],")
	body.Write(rest)
	if d.extra != nil {
		extra, err := json.Marshal(d.extra())
		if err != nil {
			reply(w, http.StatusInternalServerError, "middleware: what the dashboard shows beside cannot be written as JSON: "+err.Error()+"\n")
			return
		}
		body.WriteString(`,"extra":`)
		body.Write(extra)
	}
	body.WriteString("}\n")
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // nobody can be told if the client is gone
	}
}

// after returns the encoded moments after seq, oldest first, and the rest. The slices must not be changed.
func (d *dashboardStats) after(seq int64) (ticks [][]byte, rest []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	moments, total := d.shedder.Recent(d.seq)
	for _, m := range moments {
		d.encoded[m.Seq%int64(shed.MomentsKept)] = marshal(m)
		d.seq = m.Seq
	}
	if len(moments) > 0 || d.rest == nil {
		st := d.shedder.Status()
		text := marshal(struct {
			Total    shed.Flow      `json:"total"`
			Capacity int            `json:"capacity"`
			State    dashboardState `json:"state"`
		}{total, d.capacity, stateOf(&st)})
		d.rest = bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("{")), []byte("}"))
	}
	if seq > d.seq { // from before a restart of the program
		seq = 0
	}
	for i := max(seq, d.seq-int64(shed.MomentsKept), 0) + 1; i <= d.seq; i++ {
		ticks = append(ticks, d.encoded[i%int64(shed.MomentsKept)])
	}
	return ticks, d.rest
}
