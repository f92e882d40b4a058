package gameday

import (
	"context"
	"html/template"
	"time"
)

// act is one thing that goes wrong, or right.
type act struct {
	name, title string
	about       string // what happens
	expect      string // what should be seen
	cuts        bool   // streams cannot survive it
	play        func(ctx context.Context, s *scene) error
}

// mark is a moment or a span of an act.
type mark struct {
	text     string
	from, to time.Time
}

// scene is one playing of an act.
type scene struct {
	*load
	day    *day
	act    *act
	begin  time.Time
	end    time.Time
	checks []Check
	marks  []mark
	pings  []time.Duration
	// serviceLate is how late the service at most ended work.
	serviceLate time.Duration
	others      float64          // the share of the machine that other programs used
	local       []localDecisions // of each gateway, before the act
	// diagrams are those of this act alone.
	diagrams []template.HTML
	noise    string // why nothing that depends on time can be said; empty if it can
}

// during marks a span of the act for the report.
func (s *scene) during(text string, from, to time.Time) {
	s.marks = append(s.marks, mark{text, from, to})
}
