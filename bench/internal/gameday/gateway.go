package gameday

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/pumpkin"
)

// gatewayPackage is the program that the day is about.
const gatewayPackage = "github.com/spillway-go/spillway/examples/gateway"

// buildGateway builds it from this repository: as its users do, or with the race detector.
func buildGateway(ctx context.Context, dir string, race bool) (string, error) {
	bin := filepath.Join(dir, "gateway")
	argv := []string{"build", "-o", bin}
	if race {
		argv = append(argv, "-race")
	}
	out, err := exec.CommandContext(ctx, "go", append(argv, gatewayPackage)...).CombinedOutput()
	text := strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", " | ")
	switch {
	case err == nil:
		return bin, nil
	case strings.Contains(text, "no required module provides package"):
		return "", errUsage{errors.New("gameday: this is no checkout of Spillway; play the day in one, for the gateway is built from its source")}
	}
	return "", fmt.Errorf("gameday: the gateway cannot be built: %w: %s", err, text)
}

// gateway is one instance. It keeps its addresses over all its lives.
type gateway struct {
	*process
	bin, dir, name       string
	listen, admin, token string
	upstream             string
	atRest               resources // of this life, before it had anything to do
}

// resources are what a process holds; memory is in bytes.
type resources struct {
	goroutines, files int
	heap, resident    float64
}

// start begins a life and returns when it is ready.
func (g *gateway) start(ctx context.Context) error {
	p, err := launch(g.dir, g.name, []string{g.bin, "-config", filepath.Join(g.dir, "gateway.yaml"), "-upstream", "http://" + g.upstream,
		"-listen", g.listen, "-admin", g.admin}, nil)
	if err != nil {
		return err
	}
	g.process = p
	if _, err := p.hears("everything else goes"); err != nil {
		p.kill()
		return err
	}
	if err := await(ctx, g.name+" is ready", func() bool { return g.get("/readyz", nil) == nil }); err != nil {
		p.kill()
		return err
	}
	g.atRest, err = g.holds()
	return err
}

// view is what the day wants to know of the debug view.
type view struct {
	Shed struct {
		Limit    int `json:"limit"`
		InFlight int `json:"in_flight"`
		Waiting  int `json:"waiting"`
		Parked   int `json:"parked"`
		Streams  int `json:"streams"`
		Rules    []struct {
			Name string `json:"name"`
			Rule string `json:"rule"`
		} `json:"rules"`
		Budgets []struct {
			InUse int `json:"in_use"`
		} `json:"long_lived"`
		Store struct {
			State string `json:"state"`
			Error string `json:"error"`
		} `json:"store"`
	} `json:"shed"`
	Gateway struct {
		Streams int `json:"streams"`
	} `json:"gateway"`
}

// get reads a page of the admin listener; into is what its JSON goes to, or a *string for the text.
func (g *gateway) get(path string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.admin+path, nil)
	if err != nil {
		return err
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("gameday: %s: %s answers %s", g.name, path, res.Status)
	}
	switch into := into.(type) {
	case nil:
		return nil
	case *string:
		*into = string(text)
		return nil
	}
	return json.Unmarshal(text, into)
}

// look reads the debug view.
func (g *gateway) look() (v view, err error) { return v, g.get("/debug/spillway", &v) }

// tells reports whether the gateway's document has an item.
func (g *gateway) tells(id string) bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	res, err := client.Get("http://" + g.listen + "/pumpkin.json")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	var doc pumpkin.Document
	if json.NewDecoder(res.Body).Decode(&doc) != nil {
		return false
	}
	return slices.ContainsFunc(doc.Items, func(i pumpkin.Notice) bool { return i.ID == id })
}

// operate does what a person on call does at the pumpkin's admin endpoint.
func (g *gateway) operate(method, path, body string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+g.admin+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Close = true
	r.Header.Set("Authorization", "Bearer "+g.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("gameday: %s: %s %s answers %s: %s", g.name, method, path, res.Status, text)
	}
	return nil
}

// holds asks what the process holds.
func (g *gateway) holds() (r resources, err error) {
	m, err := g.metrics()
	if err != nil {
		return r, err
	}
	for _, name := range []string{"go_goroutines", "process_open_fds", "go_memstats_heap_alloc_bytes", "process_resident_memory_bytes"} {
		if _, there := m[name]; !there {
			return r, fmt.Errorf("gameday: %s: /metrics have no %s", g.name, name)
		}
	}
	return resources{
		goroutines: int(m["go_goroutines"]), files: int(m["process_open_fds"]),
		heap: m["go_memstats_heap_alloc_bytes"], resident: m["process_resident_memory_bytes"],
	}, nil
}

// metrics reads all samples, by their name and labels as they are written.
func (g *gateway) metrics() (map[string]float64, error) {
	var text string
	if err := g.get("/metrics", &text); err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("gameday: %s: /metrics: %w", g.name, err)
		}
		all[line[:at]] = value
	}
	return all, nil
}

// await waits until done is true. It is for what comes by itself.
func await(ctx context.Context, what string, done func() bool) error {
	for begin := time.Now(); time.Since(begin) < patience; {
		if done() {
			return nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("gameday: %s did not come within %v", what, patience)
}

// pause waits, and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
