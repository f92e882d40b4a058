package gameday

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Report is what came of a day.
type Report struct {
	Begin   time.Time
	Length  time.Duration
	Quick   bool
	Soak    time.Duration // above 0 if it was a soak
	Partial bool
	scenes  []*scene
	gauges  []gauge
}

func (d *day) report(partial bool) *Report {
	r := &Report{Begin: d.begin, Quick: d.Quick, Soak: d.Soak, Partial: partial, scenes: d.scenes}
	if !d.begin.IsZero() {
		r.Length = time.Since(d.begin)
	}
	if d.gauges != nil {
		d.gauges.stop()
		r.gauges = d.gauges.all
	}
	return r
}

// Count returns how many verdicts came out in a way.
func (r *Report) Count(status judge.Status) (n int) {
	for _, s := range r.scenes {
		for _, c := range s.checks {
			if c.Status == status {
				n++
			}
		}
	}
	return n
}

// Trouble is a line for each verdict that did not pass.
func (r *Report) Trouble() (lines []string) {
	for _, s := range r.scenes {
		for _, c := range s.checks {
			if c.Status != judge.Pass {
				lines = append(lines, fmt.Sprintf("%-7s %s: %s: %s (%s)", c.Status, s.act.name, c.What, c.Measured, c.Bound))
			}
		}
	}
	return lines
}

// row, section and page are what the page shows.
type row struct {
	Check
	Class string
}

type section struct {
	Name, Title, About, Expect, Clock, Noise string
	Status                                   judge.Status
	Class                                    string
	Rows                                     []row
	Marks                                    []string
	Groups                                   []groupRow
	Charts                                   []template.HTML
}

type groupRow struct {
	Name                                         string
	Asked, Served, Late, Over, Short, Left, None int
	P50, P99                                     string
}

// HTML writes the report as one page that loads nothing.
func (r *Report) HTML(w io.Writer) error {
	var sections []section
	for _, s := range r.scenes {
		sections = append(sections, r.section(s))
	}
	return pageTemplate.Execute(w, map[string]any{
		"R": r, "Sections": sections, "Length": r.Length.Round(time.Second).String(), "Begin": r.Begin.UTC().Format("2006-01-02 15:04 MST"),
		"Pass": r.Count(judge.Pass), "Fail": r.Count(judge.Fail), "Invalid": r.Count(judge.Invalid), "Timeline": r.timeline(), "Minutes": r.minutes(),
	})
}

func (r *Report) section(s *scene) section {
	out := section{
		Name: s.act.name, Title: s.act.title, About: s.act.about, Expect: s.act.expect, Clock: clock(s.begin.Sub(r.Begin)), Noise: s.noise, Status: judge.Pass,
	}
	for _, c := range s.checks {
		out.Rows = append(out.Rows, row{c, strings.ToLower(string(c.Status))})
		if gravity(c.Status) > gravity(out.Status) {
			out.Status = c.Status
		}
	}
	out.Class = strings.ToLower(string(out.Status))
	for _, m := range s.marks {
		out.Marks = append(out.Marks, fmt.Sprintf("%s from %.1f s to %.1f s", m.text, m.from.Sub(s.begin).Seconds(), m.to.Sub(s.begin).Seconds()))
	}
	out.Groups = groupRows(s.of())
	out.Charts = append(s.charts(), s.diagrams...)
	return out
}

// gravity orders what verdicts come out as.
func gravity(s judge.Status) int {
	return slices.Index([]judge.Status{judge.Pass, judge.Invalid, judge.Fail}, s)
}

// groupRows says for each group what became of what it asked for.
func groupRows(shots []shot) (rows []groupRow) {
	index := map[string]int{}
	took := map[string][]time.Duration{}
	for i := range shots {
		one := &shots[i]
		at, known := index[one.group]
		if !known {
			at = len(rows)
			index[one.group] = at
			rows = append(rows, groupRow{Name: one.group})
		}
		g := &rows[at]
		g.Asked++
		switch {
		case one.ok():
			g.Served++
		case one.status >= 200 && one.status < 300:
			g.Late++
		case one.status == 429:
			g.Over++
		case one.status == 503:
			g.Short++
		case one.status == notCalled:
			g.Left++
		default:
			g.None++
		}
		if one.status >= 200 && one.status < 300 {
			took[one.group] = append(took[one.group], one.took)
		}
	}
	for i := range rows {
		all := took[rows[i].Name]
		rows[i].P50, rows[i].P99 = quantile(all, .5).Round(time.Millisecond).String(), quantile(all, .99).Round(time.Millisecond).String()
	}
	return rows
}

// minute is what customers saw in a minute of the day.
type minute struct {
	Clock, Acts                                string
	Paying, PayingServed, Others, OthersServed int
	Over, Short, None                          int
}

// minutes says for each minute what customers saw. Those of the control, who have no gateway in front of them, are left out.
func (r *Report) minutes() []minute {
	if len(r.scenes) == 0 {
		return nil
	}
	all := make([]minute, int(r.Length.Minutes())+1)
	for i := range all {
		all[i].Clock = clock(time.Duration(i) * time.Minute)
	}
	at := func(t time.Time) *minute { return &all[min(max(int(t.Sub(r.Begin).Minutes()), 0), len(all)-1)] }
	for _, s := range r.scenes {
		first := at(s.begin)
		if first.Acts != "" {
			first.Acts += ", "
		}
		first.Acts += s.act.name
		if s.act.name == "control" {
			continue
		}
		for i := range s.shots {
			one := &s.shots[i]
			m := at(one.at)
			switch {
			case one.status == notCalled:
				continue
			case one.group == "paying":
				m.Paying++
			default:
				m.Others++
			}
			switch {
			case one.ok() && one.group == "paying":
				m.PayingServed++
			case one.ok():
				m.OthersServed++
			case one.status == http.StatusTooManyRequests:
				m.Over++
			case one.status == http.StatusServiceUnavailable:
				m.Short++
			default:
				m.None++
			}
		}
	}
	return all
}
