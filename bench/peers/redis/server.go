package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spillway-go/spillway/internal/redistest"
)

// server is the Redis that everybody asks.
type server struct {
	addr  string
	admin *redis.Client
}

// startServer starts a server of its own, without persistence.
func startServer() (*server, func(), error) {
	dir, err := os.MkdirTemp("", "bench-redis")
	if err != nil {
		return nil, nil, err
	}
	process, err := redistest.Start(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	admin := redis.NewClient(&redis.Options{Addr: process.Addr, Protocol: 2, DisableIdentity: true})
	return &server{process.Addr, admin}, func() {
		admin.Close()
		process.Kill()
		os.RemoveAll(dir)
	}, nil
}

// empty drops all keys.
func (s *server) empty() error { return s.admin.FlushAll(context.Background()).Err() }

// cpu returns how long the server's processors have worked.
func (s *server) cpu() (time.Duration, error) {
	user, err := s.info("cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := s.info("cpu", "used_cpu_sys")
	return time.Duration((user + system) * float64(time.Second)), err
}

// memory returns how many bytes the server has allocated.
func (s *server) memory() (float64, error) { return s.info("memory", "used_memory") }

func (s *server) info(section, field string) (float64, error) {
	text, err := s.admin.Info(context.Background(), section).Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s does not tell %s", section, field)
}

// version returns the server's version.
func (s *server) version() string {
	text, err := s.admin.Info(context.Background(), "server").Result()
	if err != nil {
		return "unknown"
	}
	_, after, _ := strings.Cut(text, "redis_version:")
	version, _, _ := strings.Cut(after, "\r\n")
	return version
}
