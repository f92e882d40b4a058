package pumpkin

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// scheduleCase is a row of the table that Schedule and the widget are both held against.
type scheduleCase struct {
	Name       string  `json:"name"`
	PollAfter  int     `json:"poll_after"`
	Failures   int     `json:"failures"`    // polls that failed in a row; 0 for a poll that was answered
	RetryAfter int     `json:"retry_after"` // of the last of them
	U          float64 `json:"u"`
	Wait       float64 `json:"wait"` // seconds to the next poll
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func TestScheduleKeepsToTheTable(t *testing.T) {
	text, err := os.ReadFile("testdata/schedule.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []scheduleCase
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 20 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		var s Schedule
		now := time.Hour
		s.Answered(now, time.Duration(c.PollAfter)*time.Second, c.U)
		for i := range c.Failures {
			now = s.Due() + time.Second
			retry := 0
			if i == c.Failures-1 {
				retry = c.RetryAfter
			}
			s.Failed(now, time.Duration(retry)*time.Second, c.U)
		}
		if got := s.Due() - now; got != seconds(c.Wait) || s.Failures() != c.Failures {
			t.Errorf("%s: waits %v after %d failures, want %v s", c.Name, got, s.Failures(), c.Wait)
		}
		s.Answered(now, 15*time.Second, 0.5)
		if got := s.Due() - now; got != 15*time.Second || s.Failures() != 0 {
			t.Errorf("%s: an answer does not bring the pace back: %v", c.Name, got)
		}
	}
}

func TestScheduleBeginsWithinFiveSeconds(t *testing.T) {
	for u, want := range map[float64]time.Duration{0: 0, 0.5: 2500 * time.Millisecond, 0.99: 4950 * time.Millisecond} {
		var s Schedule
		if s.Start(time.Minute, u); s.Due() != time.Minute+want {
			t.Errorf("u %v: first poll after %v, want %v", u, s.Due()-time.Minute, want)
		}
	}
	var s Schedule
	s.Start(0, 0)
	s.Failed(0, 0, 0.5) // no document yet: 15 s stand for its poll_after
	if s.Due() != 15*time.Second {
		t.Errorf("after a first poll that failed: %v", s.Due())
	}
}

func TestNewsBringThePollForwardButNotIntoRetryAfter(t *testing.T) {
	var s Schedule
	s.Answered(0, time.Minute, 0.5)
	s.Heard(10*time.Second, 0.25)
	if s.Due() != 25*time.Second {
		t.Errorf("heard at 10 s: poll at %v, want 25s", s.Due())
	}
	s.Heard(20*time.Second, 0.9)
	if s.Due() != 25*time.Second {
		t.Errorf("heard again: the poll moved back to %v", s.Due())
	}
	s.Failed(25*time.Second, 50*time.Second, 0.5)
	s.Heard(26*time.Second, 0)
	if s.Due() != 75*time.Second {
		t.Errorf("heard while told to stay away until 75 s: poll at %v", s.Due())
	}
}

// fleet is many clients of one document. Their polls are counted by the second.
type fleet struct {
	clients []Schedule
	rng     *rand.Rand
	perSec  []int
	// answer is what becomes of a poll.
	answer func(s *Schedule, now time.Duration, u float64)
}

// play lets time pass until end. A wheel of seconds keeps a million clients cheap; within its second, the order of polls
// makes no difference.
func (f *fleet) play(end time.Duration) {
	wheel := make([][]int32, int(end/time.Second)+1)
	put := func(i int32, s *Schedule) {
		if at := int(s.Due() / time.Second); at < len(wheel)-1 {
			wheel[at] = append(wheel[at], i)
		}
	}
	for i := range f.clients {
		put(int32(i), &f.clients[i])
	}
	f.perSec = make([]int, len(wheel)-1)
	for second := range f.perSec {
		for n := 0; n < len(wheel[second]); n++ { // which may grow: a retry can fall into the same second
			i := wheel[second][n]
			s := &f.clients[i]
			f.perSec[second]++
			f.answer(s, s.Due(), f.rng.Float64())
			put(i, s)
		}
		wheel[second] = nil
	}
}

// most returns the largest sum of polls in any window of so many seconds of [from, to).
func (f *fleet) most(from, to, window int) int {
	sum, most := 0, 0
	for i, n := range f.perSec[from:to] {
		if sum += n; i >= window {
			sum -= f.perSec[from+i-window]
		}
		most = max(most, sum)
	}
	return most
}

// steady makes the clients' next polls such as they are long after the start: whoever looks at a random instant meets long
// waits more often than short ones.
func (f *fleet) steady(pace time.Duration) {
	for i := range f.clients {
		s := &f.clients[i]
		for s.Answered(0, pace, f.rng.Float64()); f.rng.Float64() > float64(s.due)/float64(2*pace); {
			s.Answered(0, pace, f.rng.Float64())
		}
		s.due = partOf(s.due, f.rng.Float64())
	}
}

// A million clients, well, through an outage of five minutes, and after it. poll_after promises one poll from each in that
// time. Nowhere may a window of that length hold a quarter more, nor one second half as much again as its part (and chance).
func TestAMillionClientsKeepTheSumOfPollsThroughAnOutage(t *testing.T) {
	const down, up, end = 30, 330, 500
	for _, c := range []struct {
		name      string
		clients   int
		pollAfter int
		retry     time.Duration
	}{{"no answer", 1_000_000, 15, 0}, {"slow pace", 100_000, 60, 0}, {"slower than the backoff", 100_000, 600, 0}, {"Retry-After for all", 100_000, 15, 30 * time.Second}} {
		f := &fleet{clients: make([]Schedule, c.clients), rng: rand.New(rand.NewPCG(1, 2))}
		pace := time.Duration(c.pollAfter) * time.Second
		f.answer = func(s *Schedule, now time.Duration, u float64) {
			if now >= down*time.Second && now < up*time.Second {
				s.Failed(now, c.retry, u)
				return
			}
			s.Answered(now, pace, u)
		}
		f.steady(pace)
		f.play(end * time.Second)
		promised := c.clients / c.pollAfter
		for _, part := range []struct {
			name     string
			from, to int
		}{{"before", 0, down}, {"during", down, up}, {"after", up, end}} {
			second, window := f.most(part.from, part.to, 1), f.most(part.from, part.to, c.pollAfter)
			t.Logf("%s, %s: in a second %.2f of what poll_after promises, in a window %.2f", c.name, part.name,
				float64(second)/float64(promised), float64(window)/float64(c.clients))
			if chance := int(5 * math.Sqrt(float64(promised))); second > promised*3/2+chance {
				t.Errorf("%s, %s: %d polls in one second, promised are %d", c.name, part.name, second, promised)
			}
			if window > c.clients*5/4 {
				t.Errorf("%s, %s: %d polls in poll_after, promised are %d", c.name, part.name, window, c.clients)
			}
		}
		if back := f.most(end-30, end, 15); c.pollAfter == 15 && back < c.clients*7/10 {
			t.Errorf("%s: at the end only %d of %d clients are back", c.name, back, c.clients)
		}
	}
}

// The control: clients that all came in one second and wait without jitter, or put it in before the cap, are herds for ever,
// and the bounds above would say so; clients that do as they should are none any more after two minutes.
func TestTheBoundsOnPollsCanFail(t *testing.T) {
	const clients, pace = 20_000, 15 * time.Second
	for name, c := range map[string]struct {
		herd         bool
		fail, answer func(s *Schedule, now time.Duration, u float64)
	}{
		"as it should be": {false, func(s *Schedule, now time.Duration, u float64) { s.Failed(now, 0, u) },
			func(s *Schedule, now time.Duration, u float64) { s.Answered(now, pace, u) }},
		"no jitter": {true, func(s *Schedule, now time.Duration, _ float64) { s.Failed(now, 0, 0.5) },
			func(s *Schedule, now time.Duration, _ float64) { s.Answered(now, pace, 0.5) }},
		"jitter before the cap": {true, func(s *Schedule, now time.Duration, u float64) { s.Failed(now, 0, u); s.due = min(s.due, now+pace/4) },
			func(s *Schedule, now time.Duration, u float64) {
				s.Answered(now, pace, u)
				s.due = min(s.due, now+pace*9/10)
			}},
	} {
		f := &fleet{clients: make([]Schedule, clients), rng: rand.New(rand.NewPCG(1, 2))}
		f.answer = func(s *Schedule, now time.Duration, u float64) {
			if now >= 60*time.Second && now < 90*time.Second {
				c.fail(s, now, u)
			} else {
				c.answer(s, now, u)
			}
		}
		for i := range f.clients {
			f.clients[i].due = partOf(time.Second, f.rng.Float64())
		}
		f.play(300 * time.Second)
		window, second := f.most(150, 300, 15), f.most(150, 300, 1)
		if herd := window > clients*5/4 || second > clients/15*3/2; herd != c.herd {
			t.Errorf("%s: %d polls in a window and %d in a second: a herd %v, want %v", name, window, second, herd, c.herd)
		}
	}
}
