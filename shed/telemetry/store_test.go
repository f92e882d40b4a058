package telemetry_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/telemetry"
)

func TestTheStoreOfThisProcessTellsHowFullItIs(t *testing.T) {
	memory, err := limits.NewMemory(limits.MemoryConfig{MaxKeys: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := shed.New(shed.Config{Store: memory, Limits: []shed.Limit{
		{Name: "per-client", Rule: limits.TokenBucket{Capacity: 1000, Refill: limits.Rate{Amount: 1, Per: 24 * time.Hour}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const clients = 300 // each part of the table has room for one at least, and they come to far fewer parts
	for i := range clients {
		permit, err := s.Admit(t.Context(), shed.Request{Client: strconv.Itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		permit.Done(shed.Success)
	}
	st := s.Status().Memory
	if st == nil || st.Keys > st.MaxKeys || st.Overflowed == 0 || st.Overflowed+uint64(st.Keys) < clients {
		t.Fatalf("%d clients in a table for %+v", clients, st)
	}
	m := telemetry.New()
	m.Watch(s)
	want := fmt.Sprintf(`# HELP spillway_memory_keys Balances in the store of this process.
# TYPE spillway_memory_keys gauge
spillway_memory_keys %d
# HELP spillway_memory_keys_max How many balances it can hold; newcomers beyond that share one for each limit.
# TYPE spillway_memory_keys_max gauge
spillway_memory_keys_max %d
# HELP spillway_memory_overflowed_total Charges that were judged by a shared balance, because the store of this process was full.
# TYPE spillway_memory_overflowed_total counter
spillway_memory_overflowed_total %d
`, st.Keys, st.MaxKeys, st.Overflowed)
	if err := testutil.CollectAndCompare(m, strings.NewReader(want),
		"spillway_memory_keys", "spillway_memory_keys_max", "spillway_memory_overflowed_total"); err != nil {
		t.Error(err)
	}
}

// distant is a store that says that it is down.
type distant struct{ limits.Store }

func (distant) Report() limits.Report {
	return limits.Report{State: "down", Since: time.Unix(0, 0), Changes: 3, Instances: 4,
		Decisions: map[string]int64{"redis": 7, "local": 2}, Errors: map[string]int64{"unknown": 5}, SecondTries: 2, Home: &limits.Home{Region: "eu", State: "up", Borrowed: 8}, Merges: &limits.Merges{Keys: 6, Done: 11, Failed: 1}}
}

func TestASharedStoreTellsHowItIs(t *testing.T) {
	s, err := shed.New(shed.Config{Store: distant{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := telemetry.New()
	m.Watch(s)
	const want = `# HELP spillway_store_borrowed_total Decisions that were admitted with what the store of all regions has.
# TYPE spillway_store_borrowed_total counter
spillway_store_borrowed_total{region="eu"} 8
# HELP spillway_store_decisions_total Decisions by who made them: redis, lease, async, cache, local, open or closed.
# TYPE spillway_store_decisions_total counter
spillway_store_decisions_total{source="local"} 2
spillway_store_decisions_total{source="redis"} 7
# HELP spillway_store_errors_total Failed calls of the shared store, by what that means.
# TYPE spillway_store_errors_total counter
spillway_store_errors_total{kind="unknown"} 5
# HELP spillway_store_home_up 1 while the store of all regions decides, 0 while this region has its own part only.
# TYPE spillway_store_home_up gauge
spillway_store_home_up{region="eu"} 1
# HELP spillway_store_instances How many instances share the quotas: what a limit is divided by where this one decides alone.
# TYPE spillway_store_instances gauge
spillway_store_instances 4
# HELP spillway_store_merged_keys Balances that this instance counts for limits with sharing: async.
# TYPE spillway_store_merged_keys gauge
spillway_store_merged_keys 6
# HELP spillway_store_merges_total Messages in which this instance merged what it had counted for limits with sharing: async, by result: done or failed.
# TYPE spillway_store_merges_total counter
spillway_store_merges_total{result="done"} 11
spillway_store_merges_total{result="failed"} 1
# HELP spillway_store_second_tries_total Decisions that were asked about another sub-bucket, for the first did not have enough.
# TYPE spillway_store_second_tries_total counter
spillway_store_second_tries_total 2
# HELP spillway_store_state_changes_total How often the shared store stopped or began again to decide.
# TYPE spillway_store_state_changes_total counter
spillway_store_state_changes_total 3
# HELP spillway_store_up 1 while the shared store of quotas decides, 0 while each instance does what its limits' on_failure says.
# TYPE spillway_store_up gauge
spillway_store_up 0
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), "spillway_store_up", "spillway_store_state_changes_total",
		"spillway_store_instances", "spillway_store_decisions_total", "spillway_store_errors_total",
		"spillway_store_merges_total", "spillway_store_second_tries_total", "spillway_store_home_up", "spillway_store_borrowed_total", "spillway_store_merged_keys"); err != nil {
		t.Error(err)
	}
	alone, err := shed.New(shed.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	m.Watch(alone)
	if n := testutil.CollectAndCount(m, "spillway_store_up"); n != 0 {
		t.Error("a store in memory has metrics of a shared one")
	}
}
