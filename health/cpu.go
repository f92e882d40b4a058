package health

import (
	"fmt"
	"time"
)

// cpu is the share of the CPU time this process may use that it did use: Δusage ÷ (Δt × cores).
//
// Cores are quota ÷ period of the tightest cgroup above us, at most the CPUs of the affinity mask. GOMAXPROCS would be
// wrong: Go sets it to the quota rounded up, and to 2 at least. The host's utilisation would be wrong too: it sheds an
// innocent service for its neighbours, and shows a service at its quota on a large host as idle.
type cpu struct {
	account *account
	words   string
	worded  span // what words describe
}

func (c *cpu) name() string { return "cpu" }

func (c *cpu) measure(round time.Time) (float64, time.Duration, error) {
	s, err := c.account.at(round)
	if err != nil {
		return 0, 0, err
	}
	c.describe(s)
	return s.utilisation(), s.dt, nil
}

func (c *cpu) source() string { return c.words }

// describe words what is rated, if that changed.
func (c *cpu) describe(s span) {
	w := c.worded
	if c.words != "" && w.ours == s.ours && w.now.cores == s.now.cores && w.now.group.name == s.now.group.name &&
		w.now.group.decides == s.now.group.decides {
		return
	}
	c.worded = s
	who := "this process"
	if s.ours && s.now.group.decides {
		who = s.now.group.name
	}
	c.words = fmt.Sprintf("CPU time of %s, of %.4g cores", who, s.now.cores)
	switch g := s.now.group; {
	case g.decides:
		c.words += " (quota of " + g.name + ")"
	case g.name != "":
		c.words += fmt.Sprintf(" (below the quota of %s, %.4g)", g.name, g.cores)
	}
}
