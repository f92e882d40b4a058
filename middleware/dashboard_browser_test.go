package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	chromium "github.com/spillway-go/spillway/examples/demo/browser"
	"github.com/spillway-go/spillway/health"
	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

// looks opens a dashboard in Chromium; whatever the page writes to its console fails the test at its end.
func looks(t *testing.T, url string, width, height int64) context.Context {
	t.Helper()
	tab, end, err := chromium.Open(context.Background(), width, height)
	if err != nil {
		t.Fatal(err)
	}
	messages := chromedp.Console(tab)
	var written []string
	read := make(chan struct{})
	go func() {
		defer close(read)
		for m, err := range messages {
			if err != nil {
				return
			}
			written = append(written, fmt.Sprintf("%s: %s (%s:%d)", m.Type, m.Text, m.URL, m.Line))
		}
	}()
	timed, cancel := context.WithTimeout(tab, 2*time.Minute)
	t.Cleanup(func() {
		_, _ = chromedp.Run(timed, chromedp.Evaluate[int]("1")) // what was written arrives before this answer
		cancel()
		end()
		<-read
		for _, line := range written {
			t.Errorf("the page wrote to the console: %s", line)
		}
	})
	if err := chromedp.Do(timed, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	return timed
}

// holds waits until a condition holds in the page.
func holds(t *testing.T, tab context.Context, condition string) {
	t.Helper()
	if _, err := chromedp.Run(tab, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(60*time.Second))); err != nil {
		t.Fatalf("the page never came to %s: %v", condition, err)
	}
}

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
		tab := looks(t, server.URL+"/ops/live/", width, 800)
		holds(t, tab, `document.getElementById("total-offered").textContent === "25"`)
		holds(t, tab, `document.getElementById("total-over").textContent === "5"`)
		holds(t, tab, `[...document.querySelectorAll("#rules tr *")].map((e) => e.textContent).join("|").startsWith("per-client|token_bucket")`)
		holds(t, tab, `document.getElementById("reasons").textContent === "over_limit5"`)
		holds(t, tab, `document.getElementById("state").dataset.state === "idle"`)
		holds(t, tab, fmt.Sprintf(`document.documentElement.scrollWidth <= %d`, width))
		holds(t, tab, `[...document.querySelectorAll("section, canvas, [role=region]")]
			.every((e) => e.ariaLabel || document.getElementById(e.getAttribute("aria-labelledby"))?.textContent)`)
		holds(t, tab, `document.getElementById("flow-chart").getContext("2d").getImageData(0, 0, 300, 150).data.some((v) => v > 0)`)
		if again, err := chromedp.Run(tab, chromedp.Evaluate[int](`performance.getEntriesByType("resource").filter((e) => new URL(e.name).host !== location.host).length`)); err != nil || again != 0 {
			t.Errorf("%d files of other hosts, %v", again, err)
		}
	}
}
