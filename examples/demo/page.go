package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/spillway-go/spillway/examples/demo/backend"
	"github.com/spillway-go/spillway/examples/demo/stats"
)

// statistics is what the live page is told, beside the ticks.
type statistics struct {
	Total    stats.Counts `json:"total"`
	Capacity int          `json:"capacity"`
	Controls bool         `json:"controls"` // whether the buttons work
	Play     play         `json:"play"`
}

// play is what the buttons' load is doing: the button whose load is running, if any, and what to say about it.
type play struct {
	Running string `json:"running"`
	Text    string `json:"text"`
}

// stats answers the live page's poll: the ticks after the last one it has, and the rest. The route is exempt, so the work
// has to be small whoever asks: the ticks are encoded already and are only copied.
func (d *demo) stats(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // anything else is a page that has none
	ticks, total := d.meter.After(after)
	rest := statistics{Total: total, Capacity: backend.Capacity, Controls: d.controls != nil}
	if d.controls != nil {
		rest.Play.Running, rest.Play.Text = d.controls.state()
	}
	tail, err := json.Marshal(rest)
	if err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	var body bytes.Buffer
	body.WriteString(`{"ticks":[`)
	body.Write(bytes.Join(ticks, []byte(",")))
	body.WriteString("],")
	body.Write(tail[1:]) // an object without its opening brace
	w.Write(body.Bytes())
}
