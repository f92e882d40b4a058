package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

// The two ways in which other proxies ask. Without one of these prefixes, who names the original address asks as nginx does.
const (
	nginxPrefix = "/nginx"
	envoyPrefix = "/envoy"
)

// newCheck answers whether a request that another proxy holds may pass, without seeing it pass: rules over time and features
// that are off hold, but nothing is known of how long work takes or how much runs, so what is in flight is not limited.
//
// nginx (auth_request) understands 2xx and 403 only: a refusal is 403 with the status that is meant in Spillway-Status. Envoy
// (ext_authz over HTTP) passes a refusal on as it is, except that it takes every 5xx for a failure of the check itself, which
// may let everybody pass: so what is meant as 503 is 429 there, with the 503 in Spillway-Status and the reason in the body.
func newCheck(s *shed.Shedder, p *pumpkin.Pumpkin, log *slog.Logger) (http.Handler, error) {
	protect, err := middleware.ShedWithConfig(middleware.Config{
		Shedder: s, Pumpkin: p, Logger: log, NoHTML: true, Skip: ours,
		// What is answered here took no time and says nothing about the service.
		Classify: func(*http.Request, int) shed.Outcome { return shed.Ignored },
	})
	if err != nil {
		return nil, err
	}
	decide := protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) // who gets here may pass
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, nginx, ok := original(r)
		if !ok {
			problem(w, http.StatusForbidden, "no_original", "It cannot be told which request this is about; send its address in X-Original-URI.")
			return
		}
		answer := &answer{header: http.Header{}}
		decide.ServeHTTP(answer, asked)
		answer.send(w, nginx)
	}), nil
}

// namesClients reports an error where the proxy that asks would be everybody's address.
func namesClients(cfg *configfile.Config) error {
	if len(cfg.Shed.Clients.TrustedProxies) == 0 {
		return errors.New("with -check-listen the proxy that asks would be everybody's address; " +
			"list its own under clients.trusted_proxies in the file, and let it send X-Forwarded-For")
	}
	return nil
}

// original is the request that the proxy asks about, without a body.
func original(r *http.Request) (asked *http.Request, nginx, ok bool) {
	path, envoy := strings.CutPrefix(r.URL.Path, envoyPrefix)
	nginx = !envoy && (strings.HasPrefix(r.URL.Path, nginxPrefix) || r.Header["X-Original-Uri"] != nil)
	asked = r.Clone(r.Context())
	asked.Body, asked.ContentLength, asked.TransferEncoding = http.NoBody, 0, nil
	switch {
	case nginx:
		u, err := url.ParseRequestURI(r.Header.Get("X-Original-Uri"))
		if err != nil || len(r.Header["X-Original-Uri"]) != 1 {
			return nil, true, false
		}
		asked.URL = u
		if method := r.Header.Get("X-Original-Method"); method != "" {
			asked.Method = method
		}
	case envoy:
		u := *r.URL
		u.Path, u.RawPath = path, strings.TrimPrefix(u.RawPath, envoyPrefix)
		if !strings.HasPrefix(u.Path, "/") {
			u.Path, u.RawPath = "/"+u.Path, ""
		}
		asked.URL = &u
	}
	return asked, nginx, true
}

// answer is what the middleware says, kept for the proxy.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// send says it in the proxy's terms.
func (a *answer) send(w http.ResponseWriter, nginx bool) {
	status := cmp.Or(a.status, http.StatusOK) // nothing was said against it
	h := w.Header()
	for field, values := range a.header {
		if field != "Connection" { // is about the connection that the client has
			h[field] = values
		}
	}
	if status != http.StatusOK {
		var said middleware.Problem
		_ = json.Unmarshal(a.body.Bytes(), &said) // the middleware's own document
		h.Set("Spillway-Status", strconv.Itoa(status))
		h.Set("Spillway-Reason", string(said.Reason))
		switch {
		case nginx:
			status = http.StatusForbidden
		case status >= 500:
			status = http.StatusTooManyRequests
		}
		if status == http.StatusTooManyRequests {
			h.Set("X-Envoy-Ratelimited", "true") // else an Envoy further out may try again at once, by its retry policy
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(a.body.Bytes())
}
