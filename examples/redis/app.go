package main

import (
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spillway-go/spillway/limits"
	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
	"github.com/spillway-go/spillway/shed/configfile"
)

//go:embed spillway.yaml
var settings string

// app is one instance: a server, its shedder, and its store, which is Redis for all of them. Nothing else is shared.
type app struct {
	number     int
	url        string
	server     *http.Server
	shedder    *shed.Shedder
	store      limits.Store
	closeStore func()
}

// startApp starts an instance as a program of its own would: from a file.
func startApp(number int, file, redisAddr string) (*app, error) {
	text := strings.Replace(file, "127.0.0.1:6379", redisAddr, 1)
	cfg, err := configfile.Parse("spillway.yaml", []byte(text), configfile.Config{})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: untimed})).With("instance", number)
	a := &app{number: number}
	if a.store, a.closeStore, err = cfg.OpenStore(log); err != nil {
		return nil, err
	}
	cfg.Shed.Store = a.store
	if a.shedder, err = shed.New(cfg.Shed); err != nil {
		a.closeStore()
		return nil, err
	}
	// Who is called Ann is taken for her, and the warning about that is no part of the story.
	wrap, err := middleware.ShedWithConfig(middleware.Config{Shedder: a.shedder, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		a.shedder.Close()
		a.closeStore()
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.shedder.Close()
		a.closeStore()
		return nil, err
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello from instance", number) })
	a.url = "http://" + l.Addr().String() + "/"
	a.server = &http.Server{Handler: wrap(hello), ReadHeaderTimeout: 5 * time.Second}
	go a.server.Serve(l) //nolint:errcheck // it says that it was closed
	return a, nil
}

func (a *app) close() {
	a.server.Close()
	a.shedder.Close()
	a.closeStore()
}

// untimed leaves out when something was logged: the story is told in order.
func untimed(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
