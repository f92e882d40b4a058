package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/internal/browser/browsertest"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

func TestADashboardInABrowser(t *testing.T) {
	s, err := shed.New(shed.Config{
		Limits: []shed.Limit{{Name: "per-client", Rule: limits.TokenBucket{Capacity: 20, Refill: limits.PerDay(1)}}},
		Health: health.Config{Off: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	mux := http.NewServeMux()
	mux.Handle("/ops/live/", middleware.Dashboard(s))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for range 25 {
		if p, err := s.Admit(t.Context(), shed.Request{Client: "a"}); err == nil {
			p.Done(shed.Success)
		}
	}
	for _, width := range []int64{1280, 360} {
		tab := browsertest.Open(t, server.URL+"/ops/live/", width, 800, "")
		tab.Becomes(`document.getElementById("total-offered").textContent === "25"`)
		tab.Becomes(`document.getElementById("total-over").textContent === "5"`)
		tab.Becomes(`[...document.querySelectorAll("#rules tr *")].map((e) => e.textContent).join("|").startsWith("per-client|token_bucket")`)
		tab.Becomes(`document.getElementById("reasons").textContent === "over_limit5"`)
		tab.Becomes(`document.getElementById("state").dataset.state === "idle"`)
		tab.Becomes(fmt.Sprintf(`document.documentElement.scrollWidth <= %d`, width))
		tab.Becomes(`[...document.querySelectorAll("section, canvas, [role=region]")]
			.every((e) => e.ariaLabel || document.getElementById(e.getAttribute("aria-labelledby"))?.textContent)`)
		tab.Becomes(`document.getElementById("flow-chart").getContext("2d").getImageData(0, 0, 300, 150).data.some((v) => v > 0)`)
		if again, err := chromedp.Run(tab.Page, chromedp.Evaluate[int](`performance.getEntriesByType("resource").filter((e) => new URL(e.name).host !== location.host).length`)); err != nil || again != 0 {
			t.Errorf("%d files of other hosts, %v", again, err)
		}
	}
}
