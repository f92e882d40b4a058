package pumpkin

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// isOff asks without the words.
func isOff(p *Pumpkin, feature, client string) bool {
	_, _, off := p.FeatureOff(feature, client)
	return off
}

func TestFeatureIsOffWhileTheDocumentSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		if isOff(p, "search", "c") {
			t.Error("off before anything was put")
		}
		e := off("Search is off.", 1, "search")
		e.Message["de"] = "Die Suche ist aus."
		e.TTL = time.Minute
		put(t, p, "x", e)
		if words, _, off := p.FeatureOff("search", "c"); !off || words != "Search is off." {
			t.Errorf("%q, %v; want the words in the default language", words, off)
		}
		if isOff(p, "pay", "c") || isOff(p, "", "c") || isOff(p, "*", "c") {
			t.Error("another feature is off")
		}
		time.Sleep(time.Minute - 1)
		if !isOff(p, "search", "c") {
			t.Error("on before the TTL ended")
		}
		time.Sleep(time.Nanosecond)
		if isOff(p, "search", "c") {
			t.Error("off after the TTL ended")
		}
	})
}

func TestALateTimerRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		e := off("gone", 1, "search")
		e.TTL = time.Minute
		put(t, p, "x", e)
		p.Close() // no timer from here on: the snapshot stays
		time.Sleep(time.Minute)
		if !read(t, p).Active {
			t.Fatal("the snapshot changed, so this shows nothing")
		}
		if isOff(p, "search", "c") {
			t.Error("an item that has ended refuses")
		}
	})
}

func TestEverythingCoversAllFeatures(t *testing.T) {
	p := open(t, Config{})
	e := off("All down.", 1, Everything)
	e.Features["pay"] = Feature{Off: 0} // a name of its own is no exemption
	put(t, p, "all", e)
	put(t, p, "search", off("Search is off.", 1, "search"))
	for _, feature := range []string{"search", "pay", "never-heard-of"} {
		if words, _, off := p.FeatureOff(feature, "c"); !off || words != "All down." {
			t.Errorf("%s: %q, %v", feature, words, off)
		}
	}
	if !isOff(p, Everything, "c") || isOff(p, "", "c") {
		t.Error("everything is not off, or nothing is")
	}
	if _, err := p.Clear("test", "all"); err != nil {
		t.Fatal(err)
	}
	if !isOff(p, "search", "c") || isOff(p, "pay", "c") || isOff(p, Everything, "c") {
		t.Error("clearing one item touched another's features, or not its own")
	}
}

func TestTheMostSevereItemSpeaks(t *testing.T) {
	p := open(t, Config{})
	put(t, p, "a", off("minor words", 1, "search"))
	worse := off("critical words", 1, "search")
	worse.Severity = Critical
	put(t, p, "b", worse)
	if words, _, _ := p.FeatureOff("search", "c"); words != "critical words" {
		t.Errorf("%q", words)
	}
}

func TestAShareIsThatShareOfClients(t *testing.T) {
	const clients = 20_000
	for _, share := range []float64{0, 0.01, 0.25, 0.5, 0.9, 1} {
		p := open(t, Config{})
		put(t, p, "x", off("partly", share, "search"))
		n := 0.0
		for i := range clients {
			if isOff(p, "search", fmt.Sprintf("client-%d", i)) {
				n++
			}
		}
		// Five standard deviations of the binomial distribution; none at 0 and 1.
		if slack := 5 * math.Sqrt(clients*share*(1-share)); math.Abs(n-share*clients) > slack {
			t.Errorf("share %v: off for %v of %d, want within %.0f of %v", share, n, clients, slack, share*clients)
		}
	}
}

func TestAClientKeepsItsPlace(t *testing.T) {
	one, two := open(t, Config{}), open(t, Config{}) // two instances of one epoch
	other, err := newPumpkin(Config{Token: testToken}, strings.Repeat("0", 26))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, p := range []*Pumpkin{one, two, other} {
		put(t, p, "x", off("partly", 0.3, "search", "pay"))
	}
	var before []bool
	features, epochs := 0, 0
	for i := range 1000 {
		client := fmt.Sprintf("client-%d", i)
		is := isOff(one, "search", client)
		before = append(before, is)
		if isOff(two, "search", client) != is || isOff(one, "search", client) != is {
			t.Fatalf("%s: off here, on there", client)
		}
		if isOff(one, "pay", client) != is {
			features++
		}
		if isOff(other, "search", client) != is {
			epochs++
		}
	}
	// Independent draws at 0.3 differ for 2 × 0.3 × 0.7 = 42 % of clients.
	if features < 350 || features > 490 || epochs < 350 || epochs > 490 {
		t.Errorf("of 1000 clients %d differ between features and %d between epochs, want about 420", features, epochs)
	}
	put(t, one, "x", off("partly", 0.6, "search", "pay"))
	for i, was := range before {
		if was && !isOff(one, "search", fmt.Sprintf("client-%d", i)) {
			t.Fatalf("client-%d came back while the share grew", i)
		}
	}
	if placeOf(1, "a", "bc") == placeOf(1, "ab", "c") {
		t.Error("feature and client run together")
	}
}

func TestRetryAfterIsAboutOnePollAndEndsWithTheItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{PollAfter: 30 * time.Second})
		// bounds asks often and returns the least and the greatest answer.
		bounds := func() (low, high time.Duration) {
			low = math.MaxInt64
			for range 5000 {
				_, wait, off := p.FeatureOff("search", "c")
				if !off {
					t.Fatal("on")
				}
				low, high = min(low, wait), max(high, wait)
			}
			return low, high
		}
		within := func(name string, from, to time.Duration) {
			t.Helper()
			low, high := bounds()
			if low < from || high > to || float64(high-low) < 0.9*float64(to-from) {
				t.Errorf("%s: %v to %v, want spread over %v to %v", name, low, high, from, to)
			}
		}
		e := off("x", 1, "search")
		e.TTL = 10 * time.Minute
		put(t, p, "x", e)
		within("far from the end", 30*time.Second, 36*time.Second)
		time.Sleep(10*time.Minute - 10*time.Second)
		within("10 s from the end", 10*time.Second, 12*time.Second)
		time.Sleep(9900 * time.Millisecond)
		within("0.1 s from the end", time.Second, 1200*time.Millisecond)

		e.RecoverSpread, e.TTL = 60, 10*time.Second
		put(t, p, "x", e)
		within("spread", 10*time.Second, 70*time.Second)

		long := off("y", 1, "search")
		put(t, p, "y", long)
		within("another item lasts longer", 30*time.Second, 36*time.Second)
	})
}

func TestFeatureOffAllocatesNothing(t *testing.T) {
	p := open(t, Config{})
	if n := testing.AllocsPerRun(100, func() { p.FeatureOff("search", "client") }); n != 0 {
		t.Errorf("nothing is off: %v allocations", n)
	}
	put(t, p, "x", off("partly", 0.5, "search"))
	put(t, p, "y", off("wholly", 1, "pay"))
	for _, feature := range []string{"search", "pay", "other"} {
		if n := testing.AllocsPerRun(100, func() { p.FeatureOff(feature, "a client with a rather long name, longer than any buffer") }); n != 0 {
			t.Errorf("%s: %v allocations", feature, n)
		}
	}
}

func TestReadersAndWritersDoNotMeet(t *testing.T) {
	p := open(t, Config{})
	var group sync.WaitGroup
	for w := range 2 {
		group.Go(func() {
			for i := range 100 {
				e := off(fmt.Sprintf("round %d", i), 0.5, "search")
				e.TTL = time.Duration(1+i%3) * time.Millisecond
				put(t, p, fmt.Sprintf("x%d", w), e)
				if _, err := p.Clear("test", "x0"); err != nil {
					t.Error(err)
				}
			}
		})
		group.Go(func() {
			last := uint64(0)
			for range 200 {
				d := read(t, p)
				if d.Rev < last {
					t.Errorf("rev went back from %d to %d", last, d.Rev)
				}
				last = d.Rev
				p.FeatureOff("search", "c")
				p.Status()
			}
		})
	}
	group.Wait()
}

func TestStatusShowsWhatIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{})
		put(t, p, "x", off("x", 0.5, "search"))
		time.Sleep(15 * time.Minute)
		poll(p, "GET", "If-None-Match", "*")
		poll(p, "GET")
		s := p.Status()
		if len(s.Active) != 1 || s.Active[0].ID != "x" || s.Active[0].Features["search"] != 0.5 || s.Active[0].ExpiresIn != 2700 {
			t.Errorf("active: %+v", s.Active)
		}
		if s.Epoch+"."+fmt.Sprint(s.Rev) != p.Rev() || s.Polls != 1 || s.NotModified != 1 || s.Writes != 1 || s.AdminFailures != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestEpochsSortAsTheyWereMade(t *testing.T) {
	if got := newULID(time.UnixMilli(1469918176385))[:10]; got != "01ARYZ6S41" { // the specification's example
		t.Errorf("%s", got)
	}
	if got := newULID(time.UnixMilli(1<<48 - 1))[:10]; got != "7ZZZZZZZZZ" {
		t.Errorf("the last: %s", got)
	}
	seen, last := map[string]bool{}, ""
	for i := range 1000 {
		u := newULID(start.Add(time.Duration(i) * time.Millisecond))
		if len(u) != 26 || seen[u] || u <= last {
			t.Fatalf("%s after %s", u, last)
		}
		seen[u], last = true, u
	}
}
