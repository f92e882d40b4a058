package main

import (
	"fmt"
	"net/http"

	"github.com/spillway-go/spillway/examples/demo/internal/backend"
	"github.com/spillway-go/spillway/examples/demo/internal/web"
)

// beside is what the live page is told beside the dashboard's own numbers.
type beside struct {
	Controls bool `json:"controls"` // whether the buttons work
	Play     play `json:"play"`
}

// play is what the buttons' load is doing: the button whose load is running, if any, and what to say about it.
type play struct {
	Running string `json:"running"`
	Text    string `json:"text"`
}

// page is the live page: the dashboard with the demo's buttons.
func (d *demo) page() (http.Handler, error) {
	page, err := web.Handler(d.shedder, backend.Capacity, func() any {
		b := beside{Controls: d.controls != nil}
		if d.controls != nil {
			b.Play.Running, b.Play.Text = d.controls.state()
		}
		return b
	})
	if err != nil {
		return nil, fmt.Errorf("the live page: %w", err)
	}
	return page, nil
}
