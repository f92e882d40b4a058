package scenarios

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

//go:embed *.yaml
var files embed.FS

// maxFile bounds a scenario file: it is written by hand.
const maxFile = 1 << 20

// All returns the built-in scenarios, ordered by name.
func All() ([]*Scenario, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := Parse(name, text)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Find returns the built-in scenario with that id, or the one in the file of that name.
func Find(name string) (*Scenario, error) {
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("bench: scenario: %w", err)
		}
		if info.Size() > maxFile {
			return nil, fmt.Errorf("bench: scenario %s: %d bytes is more than a scenario can have (1 MiB)", name, info.Size())
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("bench: scenario: %w", err)
		}
		return Parse(name, text)
	}
	text, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("bench: there is no scenario %q; bench list shows them, and a file ends in .yaml", name)
	}
	return Parse(name+".yaml", text)
}

// Parse reads and checks one scenario. Errors are one line: the file, what is wrong, and how to mend it.
func Parse(name string, text []byte) (*Scenario, error) {
	s := new(Scenario)
	if err := decode(text, s); err != nil {
		return nil, fmt.Errorf("bench: %s: %s", name, oneLine(err))
	}
	s.fill()
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("bench: %s: %w", name, err)
	}
	return s, nil
}

// decode reads the YAML. The decoder panics on some malformed documents; that is a mistake of the document, too.
func decode(text []byte, s *Scenario) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML cannot be read: %v", r)
		}
	}()
	return yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(s)
}

// oneLine is the first line of a YAML error, with its position; the excerpt that follows is left out.
func oneLine(err error) string {
	first, _, _ := strings.Cut(strings.TrimSpace(yaml.FormatError(err, false, false)), "\n")
	return first
}

// fill puts the defaults in.
func (s *Scenario) fill() {
	if s.Arrivals == "" {
		s.Arrivals = "poisson"
	}
	if s.App.Spread == "" {
		s.App.Spread = "fixed"
	}
	if s.Static == 0 {
		s.Static = s.App.Slots
	}
	if s.Margin == 0 {
		s.Margin = 0.05
	}
	if len(s.Arms) == 0 && s.Kind == "probe" {
		s.Arms = []string{"none", "spillway"}
	} else if len(s.Arms) == 0 {
		s.Arms = []string{"none", "static", "spillway"}
	}
	if len(s.Levels) == 0 {
		s.Levels = []float64{1}
	}
	for i := range s.Populations {
		p := &s.Populations[i]
		p.Clients = max(p.Clients, 1)
		if p.Route == "" {
			p.Route = "api"
		}
		if p.Service == 0 {
			p.Service = s.App.Service
		}
		if p.Deadline == 0 {
			p.Deadline = s.Deadline
		}
		if p.Timeout == 0 {
			p.Timeout = p.Deadline
		}
	}
	for i := range s.Pass {
		if s.Pass[i].Arm == "" {
			s.Pass[i].Arm = "spillway"
		}
	}
}

// The longest and the largest of what a scenario may ask for.
const (
	longest     = 7 * 24 * time.Hour
	mostClients = 100_000
	mostSlots   = 1_000_000
)

func (s *Scenario) check() error {
	kinds := []string{"", "sweep", "bisect", "probe", "overhead"}
	switch {
	case s.ID == "":
		return errors.New("id: a scenario needs a name")
	case !slices.Contains(kinds, s.Kind):
		return fmt.Errorf("kind: %q is none of sweep, bisect, probe, overhead", s.Kind)
	case s.Kind == "probe":
		if s.Probe == nil || s.Probe.Capacity < 2 || s.Probe.Refill < 1 {
			return errors.New("probe: needs a capacity of at least 2 and a refill of at least 1 per second")
		}
		return nil
	case s.App.Slots < 1 || s.App.Slots > mostSlots || s.App.Service <= 0:
		return errors.New("app: needs slots (at least 1) and a service time such as 20ms")
	case s.Deadline <= 0 || s.Deadline > time.Minute:
		return errors.New("deadline: needs a time such as 250ms, at most 60s")
	case s.Arrivals != "poisson" && s.Arrivals != "constant":
		return fmt.Errorf("arrivals: %q is neither poisson nor constant", s.Arrivals)
	case s.App.Spread != "fixed" && s.App.Spread != "exponential":
		return fmt.Errorf("app: spread: %q is neither fixed nor exponential", s.App.Spread)
	case len(s.Phases) == 0 || len(s.Populations) == 0:
		return errors.New("needs at least one phase and one population")
	case s.Duration() > longest:
		return fmt.Errorf("phases: %v in all is longer than %v", s.Duration(), longest)
	}
	for i, p := range s.Phases {
		if p.Name == "" || p.For <= 0 || p.Quick < 0 || p.Real < 0 {
			return fmt.Errorf("phases[%d]: needs a name, and for: how long", i)
		}
	}
	for i := range s.Populations {
		if err := s.checkPopulation(&s.Populations[i]); err != nil {
			return fmt.Errorf("populations[%d]: %w", i, err)
		}
	}
	for i, d := range s.Disturb {
		if err := s.checkDisturbance(d); err != nil {
			return fmt.Errorf("disturb[%d]: %w", i, err)
		}
	}
	if err := s.checkSwitch(); err != nil {
		return err
	}
	for i := range s.Pass {
		if err := s.checkCriterion(&s.Pass[i]); err != nil {
			return fmt.Errorf("pass[%d]: %w", i, err)
		}
	}
	return nil
}

func (s *Scenario) checkPopulation(p *Population) error {
	switch {
	case p.Name == "":
		return errors.New("needs a name")
	case p.Clients > mostClients:
		return fmt.Errorf("clients: %d is above %d", p.Clients, mostClients)
	case len(p.Load) > 1 && len(p.Load) != len(s.Phases):
		return fmt.Errorf("load: %d entries for %d phases; give one for each, or one for all", len(p.Load), len(s.Phases))
	case len(p.Load) == 0 && p.Bursts == nil:
		return errors.New("needs a load or bursts")
	case p.Service < 0 || p.Deadline < 0 || p.Timeout < 0 || p.Churn < 0 || p.Timeout > time.Minute:
		return errors.New("times must not be negative, and a timeout is at most 60s")
	case p.Retry != nil && (p.Retry.Max < 1 || p.Retry.Max > 100 || p.Retry.Policy != "immediate" && p.Retry.Policy != "backoff"):
		return errors.New("retry: needs max from 1 to 100, and the policy immediate or backoff")
	case p.From.IsValid() && p.From.Addr().Is4In6():
		return fmt.Errorf("from: %v: write a network such as 198.51.100.0/24 or 2001:db8::/64", p.From)
	case p.Bursts != nil && (p.Bursts.Size <= 0 || p.Bursts.At < 0 || p.Bursts.Every < 0):
		return errors.New("bursts: needs a size above 0, a multiple of deadline times capacity")
	}
	return nil
}

func (s *Scenario) checkDisturbance(d Disturbance) error {
	switch {
	case d.For <= 0 || d.At < 0 || d.Every < 0:
		return errors.New("needs for: how long")
	case d.Every > 0 && d.Every <= d.For:
		return errors.New("every: must be longer than for")
	case d.Lost < 0 || d.Lost > s.App.Slots || d.Lost > 0 && (d.Every > 0 || d.Stall || d.Slower != 0):
		return errors.New("lost: needs a number of slots that the app has, and goes with no every, stall or slower")
	case !d.Stall && d.Lost == 0 && d.Slower <= 0:
		return errors.New("needs slower: by which factor, stall: true, or lost: how many slots")
	case d.Population != "" && s.Population(d.Population) < 0:
		return fmt.Errorf("there is no population %q", d.Population)
	}
	return nil
}

func (s *Scenario) checkCriterion(c *Criterion) error {
	switch {
	case c.Name == "" || c.Metric == "":
		return errors.New("needs a name and a metric")
	case c.Slack < 0 || c.Slack > 0 != (c.SlackWhy != ""):
		return fmt.Errorf("%s: slack: needs a number above 0, and slack_why", c.Name)
	case c.Min == nil && c.Max == nil:
		return fmt.Errorf("%s: needs min or max", c.Name)
	case c.Arm != "none" && c.Arm != "static" && c.Arm != "spillway":
		return fmt.Errorf("%s: arm %q is none of none, static, spillway", c.Name, c.Arm)
	}
	for _, name := range []string{c.Phase, c.Than} {
		if name != "" && !slices.ContainsFunc(s.Phases, func(p Phase) bool { return p.Name == name }) {
			return fmt.Errorf("%s: there is no phase %q", c.Name, name)
		}
	}
	for _, name := range c.Of {
		if s.Population(name) < 0 {
			return fmt.Errorf("%s: there is no population %q", c.Name, name)
		}
	}
	return nil
}
