package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/redistest"
	"github.com/spillway-go/spillway/internal/wait"
)

// TestTwoDemosShareAQuota is the whole way from the file to Redis and to the debug view, with everything else of the demo on.
func TestTwoDemosShareAQuota(t *testing.T) {
	server := redistest.Single(t)
	file := filepath.Join(t.TempDir(), "f.yaml")
	text := `
limits: [{name: site, fixed_window: {quota: 10/day}, per: global, on_failure: closed}]
store: {redis: {url: "redis://` + server.Addr + `/0", instances: 2, timeout: 5s}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	demos := []*demo{started(t, "-config", file), started(t, "-config", file)}
	ask := func(d *demo) int {
		answer, _ := answered(t, request(t, http.MethodGet, d.url("/api/items"), ""))
		return answer.StatusCode
	}
	codes := map[int]int{}
	for i := range 20 {
		codes[ask(demos[i%2])]++
	}
	if codes[200] != 10 || codes[429] != 10 {
		t.Errorf("answers %v, want 10 × 200 and 10 × 429", codes)
	}
	view := func() string {
		_, body := answered(t, request(t, http.MethodGet, "http://"+demos[0].admin.Addr().String()+"/debug/spillway", ""))
		return body
	}
	if v := view(); !strings.Contains(v, `"state":"up"`) && !strings.Contains(v, `"state": "up"`) {
		t.Errorf("the debug view does not show the store: %s", v)
	}
	server.Kill()
	if code := ask(demos[0]); code != http.StatusServiceUnavailable {
		t.Errorf("closed and cut off: %d, want 503", code)
	}
	wait.Until(t, "the debug view shows that the store is down", func() bool {
		ask(demos[0])
		return strings.Contains(view(), "refused")
	})
	_, metrics := answered(t, request(t, http.MethodGet, demos[0].url("/metrics"), ""))
	if !strings.Contains(metrics, "spillway_store_up ") || !strings.Contains(metrics, `spillway_store_decisions_total{source="redis"} `) {
		t.Error("the metrics do not tell about the store")
	}
}
