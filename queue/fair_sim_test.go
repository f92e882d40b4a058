//go:build !race

// One goroutine does everything here, so the race detector would only cost time.

package queue

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// source is one client in a simulation: it asks at random moments, rate times a second.
type source struct {
	name     string
	rate     float64
	priority int
	cost     int64
}

// yield is what came of it.
type yield struct{ asked, served int }

func (y yield) share() float64 { return float64(y.served) / float64(y.asked) }

// A backend of 16 places, each request 20 ms on average, exponentially distributed: 800 a second. Nobody waits longer than
// patience; who would have to is refused at once.
const (
	places   = 16
	service  = 20 * time.Millisecond
	capacity = 800.0
	patience = 150 * time.Millisecond
)

// simulate lets the sources ask for so many seconds and counts who was served.
func simulate(line Line, sources []source, seconds int, seed uint64) []yield {
	random := rand.New(rand.NewPCG(seed, 7))
	gap := func(mean float64) time.Duration {
		return time.Duration(random.ExpFloat64() * mean * float64(time.Second))
	}
	yields, next := make([]yield, len(sources)), make([]time.Duration, len(sources))
	for i, s := range sources {
		next[i] = gap(1 / s.rate)
	}
	var ends []time.Duration // of those who are served
	run := func(now time.Duration, i int) {
		yields[i].served++
		ends = append(ends, now+gap(service.Seconds()))
	}
	for {
		i := least(next)
		now := next[i]
		if e := least(ends); e >= 0 && ends[e] <= now {
			now = ends[e]
			ends = slices.Delete(ends, e, e+1)
			line.Expire(now)
			if w := line.Pop(now); w != nil {
				run(now, w.Owner.(int))
			}
			continue
		}
		if now > time.Duration(seconds)*time.Second {
			return yields
		}
		next[i] += gap(1 / sources[i].rate)
		yields[i].asked++
		line.Expire(now)
		s := sources[i]
		w := &Waiter{Owner: i, Client: s.name, Priority: s.priority, Cost: s.cost, Arrived: now, Deadline: now + patience}
		if len(ends) < places {
			run(now, i)
		} else if n, ok := line.Ahead(now, w); ok && time.Duration(n+1)*service/places <= patience {
			line.Push(now, w)
		} else {
			line.Refused(now, w)
		}
	}
}

// least returns the index of the smallest, -1 if there is none.
func least(times []time.Duration) int {
	at := -1
	for i := range times {
		if at < 0 || times[i] < times[at] {
			at = i
		}
	}
	return at
}

// maxMin is the oracle of fairness: the shares of a capacity in which nobody can get more without taking from somebody who has
// less. Who asks for less than an equal part of what is left gets it; the others divide the rest in the same way.
func maxMin(demands []float64, capacity float64) []float64 {
	shares, open := make([]float64, len(demands)), len(demands)
	done := make([]bool, len(demands))
	for open > 0 {
		part, content := capacity/float64(open), false
		for i, d := range demands {
			if !done[i] && d <= part {
				shares[i], done[i], content = d, true, true
				capacity, open = capacity-d, open-1
			}
		}
		if content {
			continue
		}
		for i := range demands {
			if !done[i] {
				shares[i], done[i] = part, true
			}
		}
		open = 0
	}
	return shares
}

func TestTheOracleDividesFairly(t *testing.T) {
	for _, c := range []struct {
		why      string
		demands  []float64
		capacity float64
		want     []float64
	}{
		{"nobody", nil, 10, nil},
		{"room for all", []float64{1, 2, 3}, 10, []float64{1, 2, 3}},
		{"all ask for too much", []float64{9, 9}, 10, []float64{5, 5}},
		{"the modest are served in full", []float64{2, 100}, 10, []float64{2, 8}},
		{"the middle one is modest once the small one is", []float64{1, 4, 100}, 10, []float64{1, 4, 5}},
		{"nothing to divide", []float64{1, 2}, 0, []float64{0, 0}},
	} {
		if got := maxMin(c.demands, c.capacity); !slices.Equal(got, c.want) && len(c.want) > 0 {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}

// jain is Jain's index of what each got of its fair share: 1 when all got the same part, 1/n when one got everything.
func jain(sources []source, yields []yield, seconds int) float64 {
	demands := make([]float64, len(sources))
	for i, s := range sources {
		demands[i] = s.rate
	}
	sum, squares := 0.0, 0.0
	for i, fair := range maxMin(demands, capacity) {
		x := float64(yields[i].served) / float64(seconds) / fair
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(sources)) * squares)
}

func TestJainsIndexTellsFairFromUnfair(t *testing.T) {
	all := []source{{rate: 1}, {rate: 1}, {rate: 1}, {rate: 1}}
	if j := jain(all, []yield{{1, 1}, {1, 1}, {1, 1}, {1, 1}}, 1); j != 1 {
		t.Errorf("all alike: %v", j)
	}
	if j := jain(all, []yield{{1, 1}, {1, 0}, {1, 0}, {1, 0}}, 1); j != .25 {
		t.Errorf("one of four has it all: %v", j)
	}
}

// noisy is n steady clients that together ask for half the capacity and one that asks for 1.5 times the capacity: 51 times what
// each of 17 asks for, 150 times what each of 50 does.
func noisy(n int) []source {
	all := []source{{name: "greedy", rate: 1.5 * capacity}}
	for i := range n {
		all = append(all, source{name: strconv.Itoa(i), rate: .5 * capacity / float64(n)})
	}
	return all
}

// fairness returns the success of the worst steady client, of all steady clients, Jain's index and how much was served of
// what could be.
func fairness(line Line, sources []source, seed uint64) (worst, steady, index, used float64) {
	const seconds = 30
	yields := simulate(line, sources, seconds, seed)
	worst = 1
	var sum yield
	for _, y := range yields[1:] {
		worst = min(worst, y.share())
		sum.asked, sum.served = sum.asked+y.asked, sum.served+y.served
	}
	return worst, sum.share(), jain(sources, yields, seconds), float64(sum.served+yields[0].served) / seconds / capacity
}

func TestANoisyNeighbourStarvesNobody(t *testing.T) {
	for _, n := range []int{9, 17, 50} {
		for seed := range uint64(5) {
			worst, steady, index, used := fairness(NewFair(200), noisy(n), seed)
			if worst < .97 || steady < .99 || index < .95 || used < .97 {
				t.Errorf("%d steady clients: %.4f served, the worst %.4f; Jain %.3f, capacity used %.3f", n, steady, worst, index, used)
			}
		}
	}
}

// TestFIFOLetsANoisyNeighbourStarveTheOthers is the negative control: the same scenario must tell a line that knows no clients.
func TestFIFOLetsANoisyNeighbourStarveTheOthers(t *testing.T) {
	if _, steady, index, _ := fairness(NewFIFO(200), noisy(17), 1); steady > .7 || index > .95 {
		t.Errorf("first come, first served served %.3f of the steady clients, Jain %.3f: the scenario shows nothing", steady, index)
	}
}

// TestCostsDivideTheCapacityByWork: who asks for reports that weigh 5 gets a fifth as many.
func TestCostsDivideTheCapacityByWork(t *testing.T) {
	const seconds = 30
	sources := []source{{"reads", capacity, 0, 1}, {"reports", capacity, 0, 5}}
	y := simulate(NewFair(200), sources, seconds, 1)
	if ratio := float64(y[0].served) / float64(y[1].served); ratio < 4.5 || ratio > 5.5 {
		t.Errorf("%d reads and %d reports of 5: %.2f to 1", y[0].served, y[1].served, ratio)
	}
	// A client that asks for less than its share of work gets all of it, heavy as each request is.
	sources = append(noisy(17)[:17], source{"reports", 6, 0, 5})
	if y := simulate(NewFair(200), sources, seconds, 1); y[17].share() < .98 {
		t.Errorf("%.3f of a few reports were served beside a noisy neighbour", y[17].share())
	}
}

// ranked is the load of twice the capacity in which the two upper priorities fill it, or nearly.
func ranked(critical, sheddablePlus, sheddable float64) []source {
	return []source{
		{"a", critical * capacity, 0, 1}, {"b", sheddablePlus * capacity, -1, 1}, {"c", sheddable * capacity, -2, 1},
	}
}

func TestTheTopPriorityIsServedAtTwiceTheCapacity(t *testing.T) {
	for seed := range uint64(5) {
		y := simulate(NewFair(200), ranked(.5, .5, 1), 30, seed)
		if y[0].share() < .994 || y[1].share() < .84 || y[1].share() <= y[2].share() || y[2].served == 0 {
			t.Errorf("served %.4f, %.4f, %.4f", y[0].share(), y[1].share(), y[2].share())
		}
		y = simulate(NewFair(200), ranked(.3, .3, 1.4), 30, seed)
		if y[0].share() < .994 || y[1].share() < .99 || math.Abs(y[2].share()-.4/1.4) > .03 {
			t.Errorf("with room for some of the lowest: served %.4f, %.4f, %.4f", y[0].share(), y[1].share(), y[2].share())
		}
	}
}

// TestFIFOServesTheTopPriorityNoBetter is the negative control.
func TestFIFOServesTheTopPriorityNoBetter(t *testing.T) {
	if y := simulate(NewFIFO(200), ranked(.5, .5, 1), 30, 1); y[0].share() > .7 {
		t.Errorf("first come, first served served %.3f of the top: the scenario shows nothing", y[0].share())
	}
}

// TestNoPriorityStarvesWhenTheTopAsksForEverything: the promise holds when the higher priorities alone could fill the line.
func TestNoPriorityStarvesWhenTheTopAsksForEverything(t *testing.T) {
	const seconds = 30
	sources := []source{{"a", 3 * capacity, 1, 1}, {"b", capacity, 0, 1}, {"c", capacity, -1, 1}, {"d", capacity, -2, 1}}
	for i, y := range simulate(NewFair(200), sources, seconds, 1)[1:] {
		if turns := float64(y.served) * PromisedTurn / seconds / capacity; turns < .9 {
			t.Errorf("%s got %.2f of the turns it is promised", sources[i+1].name, turns)
		}
	}
}
