package gameday

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spillway-go/spillway/bench/internal/judge"
	"github.com/spillway-go/spillway/bench/internal/page"
)

//go:embed page.html
var text string

var whole = page.New(text, template.FuncMap{"sum": func(a, b int) int { return a + b }})

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

// fates are what became of what customers asked for, by number.
type fates struct {
	Asked, Served, Late, Over, Short, None int
	NotCalled                              int // left alone by the client itself, and not in Asked
}

func (f *fates) add(one *shot) {
	if one.status == notCalled {
		f.NotCalled++
		return
	}
	f.Asked++
	switch {
	case one.ok():
		f.Served++
	case one.answered():
		f.Late++
	case one.status == http.StatusTooManyRequests:
		f.Over++
	case one.status == http.StatusServiceUnavailable:
		f.Short++
	default:
		f.None++
	}
}

// Unserved is what had no answer, or one too late or with an error.
func (f fates) Unserved() int { return f.Late + f.None }

// crowds are the fates of the paying, and of all others.
type crowds struct{ Paying, Others fates }

func (c *crowds) add(one *shot) {
	if one.group == "paying" {
		c.Paying.add(one)
	} else {
		c.Others.add(one)
	}
}

// section is an act on the page.
type section struct {
	Name, Title, About, Expect, Clock, Noise string
	Status                                   judge.Status
	Control                                  bool
	Recovered                                string // how long that took; empty where nothing had to
	Checks, Trouble                          []Check
	Marks                                    []string
	Sum                                      crowds
	Groups                                   []*groupRow
	Told                                     []answer
	Charts                                   []template.HTML
}

// groupRow is the customers of a kind.
type groupRow struct {
	Name string
	fates
	P50, P99 string
}

// HTML writes the report as one page that loads nothing.
func (r *Report) HTML(w io.Writer) error {
	var sections []section
	for _, s := range r.scenes {
		sections = append(sections, r.section(s))
	}
	return whole.Execute(w, map[string]any{
		"R": r, "Sections": sections, "Length": r.Length.Round(time.Second).String(), "Begin": r.Begin.UTC().Format("2006-01-02 15:04 MST"),
		"Pass": r.Count(judge.Pass), "Fail": r.Count(judge.Fail), "Invalid": r.Count(judge.Invalid),
		"Customers": r.customers(), "Inside": r.inside(), "Minutes": r.minutes(),
	})
}

func (r *Report) section(s *scene) section {
	out := section{
		Name: s.act.name, Title: s.act.title, About: s.act.about, Expect: s.act.expect, Clock: clock(s.begin.Sub(r.Begin)), Noise: s.noise,
		Status: judge.Pass, Control: s.act.name == controlName, Checks: s.checks,
	}
	for _, c := range s.checks {
		if c.Status != judge.Pass {
			out.Trouble = append(out.Trouble, c)
		}
		if gravity(c.Status) > gravity(out.Status) {
			out.Status = c.Status
		}
		if c.What == recoveredAfter {
			out.Recovered = c.Measured
		}
	}
	for _, m := range s.marks {
		out.Marks = append(out.Marks, fmt.Sprintf("%s from %.1f s to %.1f s", m.text, m.from.Sub(s.begin).Seconds(), m.to.Sub(s.begin).Seconds()))
	}
	shots := s.of()
	for i := range shots {
		out.Sum.add(&shots[i])
	}
	out.Groups, out.Told = groupRows(shots), answers(shots)
	out.Charts = append(s.charts(), s.diagrams...)
	return out
}

// gravity orders what verdicts come out as.
func gravity(s judge.Status) int {
	return slices.Index([]judge.Status{judge.Pass, judge.Invalid, judge.Fail}, s)
}

// groupRows says for each group what became of what it asked for, in the order in which they came.
func groupRows(shots []shot) (rows []*groupRow) {
	index, took := map[string]*groupRow{}, map[string][]time.Duration{}
	for i := range shots {
		one := &shots[i]
		row := index[one.group]
		if row == nil {
			row = &groupRow{Name: one.group}
			index[one.group], rows = row, append(rows, row)
		}
		row.add(one)
		if one.answered() {
			took[one.group] = append(took[one.group], one.took)
		}
	}
	for _, row := range rows {
		if all := took[row.Name]; len(all) > 0 {
			row.P50, row.P99 = quantile(all, .5).Round(time.Millisecond).String(), quantile(all, .99).Round(time.Millisecond).String()
		}
	}
	return rows
}

// answer is what so many of those who were refused were told.
type answer struct {
	Number   int
	What     string // status and reason
	From, To int    // Retry-After in seconds; below 0 where one of them had none
}

// answers says what refusals said, the most frequent first.
func answers(shots []shot) (all []answer) {
	index := map[string]int{}
	for i := range shots {
		one := &shots[i]
		if !one.refused() {
			continue
		}
		what := fmt.Sprintf("%d %s", one.status, one.reason)
		at, known := index[what]
		if !known {
			at, index[what] = len(all), len(all)
			all = append(all, answer{What: what, From: one.after, To: one.after})
		}
		a := &all[at]
		a.Number, a.From, a.To = a.Number+1, min(a.From, one.after), max(a.To, one.after)
	}
	slices.SortStableFunc(all, func(a, b answer) int { return b.Number - a.Number })
	return all
}

// minute is what customers saw in a minute of the day.
type minute struct {
	Clock, Acts string
	crowds
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
		if s.act.name == controlName {
			continue
		}
		for i := range s.shots {
			at(s.shots[i].at).add(&s.shots[i])
		}
	}
	return all
}
