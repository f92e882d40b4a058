// Command screenshot takes the picture of the live page that the README shows: it builds and starts the demo, presses the
// button for the 5× overload, waits until there is something to see, and writes a PNG.
//
//	go run ./examples/demo/screenshot -o docs/demo.png
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/spillway-go/spillway/internal/browser"
)

const program = "github.com/spillway-go/spillway/examples/demo"

func main() {
	out := flag.String("o", "demo.png", "where to write the picture")
	scheme := flag.String("scheme", "light", "light or dark")
	width := flag.Int64("width", 1280, "of the window, in CSS pixels")
	height := flag.Int64("height", 900, "of the window, in CSS pixels")
	after := flag.Duration("after", 10*time.Second, "how long the overload lasts before the picture is taken")
	listen := flag.String("listen", "127.0.0.1:0", "where the demo listens; the page shows it")
	pumpkin := flag.Bool("pumpkin", false, "raise the pumpkin, too")
	flag.Parse()
	if err := take(*out, *listen, *scheme, *width, *height, *after, *pumpkin); err != nil {
		fmt.Fprintln(os.Stderr, "screenshot:", err)
		os.Exit(1)
	}
}

func take(out, listen, scheme string, width, height int64, after time.Duration, pumpkin bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), after+3*time.Minute)
	defer cancel()
	page, stop, err := demo(ctx, listen)
	if err != nil {
		return err
	}
	defer stop()
	tab, end, err := browser.Open(ctx, width, height)
	if err != nil {
		return err
	}
	defer end()
	steps := []chromedp.Action[chromedp.Void]{
		browser.Media("prefers-color-scheme", scheme),
		chromedp.Navigate(page),
		chromedp.WaitReady(chromedp.CSS(`[data-play="burst"][aria-disabled="false"]`)),
		chromedp.Sleep(6 * time.Second), // until pressure is known
		chromedp.Click(chromedp.CSS(`[data-play="burst"]`)),
		chromedp.Sleep(3 * time.Second),
		chromedp.Click(chromedp.CSS(`[data-play="orders"]`)),
		chromedp.Sleep(4 * time.Second),
	}
	if pumpkin {
		steps = append(steps, chromedp.Click(chromedp.CSS("#pumpkin")))
	}
	steps = append(steps, chromedp.Click(chromedp.CSS(`[data-play="overload"]`)), chromedp.Sleep(after))
	if err := chromedp.Do(tab, steps...); err != nil {
		return err
	}
	png, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(out, png, 0o644)
}

// demo builds the demo, starts it, and returns the address of its page and what ends it.
func demo(ctx context.Context, listen string) (page string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "spillway-screenshot-")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	binary := filepath.Join(dir, "demo")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, program)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", nil, fmt.Errorf("build the demo: %w", err)
	}
	cmd := exec.CommandContext(ctx, binary, "-listen", listen, "-admin", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the demo: %w", err)
	}
	stop = func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		os.RemoveAll(dir)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "live page"); ok {
			go func() {
				for lines.Scan() { // what it prints later must not fill the pipe
				}
			}()
			return strings.TrimSpace(rest), stop, nil
		}
	}
	stop()
	return "", nil, errors.New("the demo did not say where its page is")
}
