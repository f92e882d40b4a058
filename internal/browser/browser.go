// Package browser starts Chromium for programs that look at a page: tests, the screenshot, the game day.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// ErrMissing says that there is no Chromium, and how to get one.
var ErrMissing = errors.New("browser: Chromium is not installed; install it with: apt-get install -y chromium (make test does so)")

// names are what Chromium is called.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find returns the path of Chromium, or ErrMissing.
func Find() (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

// Open starts a headless Chromium with a fresh profile and returns a context to drive its one tab with chromedp, and what
// ends it. The tab's window has the size in CSS pixels.
func Open(parent context.Context, width, height int64) (tab context.Context, end func(), err error) {
	path, err := Find()
	if err != nil {
		return nil, nil, err
	}
	profile, err := os.MkdirTemp("", "spillway-chromium-")
	if err != nil {
		return nil, nil, fmt.Errorf("browser: make a profile: %w", err)
	}
	allocator, endAllocator := chromedp.NewExecAllocator(parent,
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.Headless,
		chromedp.NoSandbox,
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-default-apps", true),
		chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("hide-scrollbars", true),
	)
	tab, endTab := chromedp.NewContext(allocator)
	end = func() {
		endTab()
		endAllocator()
		remove(profile)
	}
	if err := chromedp.Do(tab, chromedp.EmulateViewport(width, height)); err != nil {
		end()
		return nil, nil, fmt.Errorf("browser: start %s: %w", path, err)
	}
	return tab, end, nil
}

// Media makes pages see what a person prefers: Media("prefers-color-scheme", "dark").
func Media(features ...string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		var params emulation.SetEmulatedMediaParams
		for i := 0; i+1 < len(features); i += 2 {
			params.Features = append(params.Features, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
		}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, params)
		return err
	})
}

// remove deletes the profile. Helpers of a browser that has just ended may still be writing there, hence the patience.
func remove(profile string) {
	for range 20 {
		if os.RemoveAll(profile) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
