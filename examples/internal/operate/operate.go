package operate

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/shed"
)

// Parse reads args into flags, without a word of its own: a program takes no argument beside its flags, and no flag that is empty.
func Parse(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	var empty error
	flags.Visit(func(f *flag.Flag) {
		if f.Value.String() == "" {
			empty = fmt.Errorf("-%s is empty", f.Name)
		}
	})
	return empty
}

// Listen opens a listener with open, which is about to listen on addr; an error names the flag that chooses another address.
func Listen(program, flag, addr string, open func() (net.Listener, error)) (net.Listener, error) {
	l, err := open()
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, pumpkin.ErrNeedsToken):
		return nil, fmt.Errorf("%s: %w", program, err)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: cannot listen on %s: another program does; stop it or choose another address with %s", program, addr, flag)
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return nil, fmt.Errorf("%s: cannot listen on %s: %w; choose another address with %s HOST:PORT", program, addr, err, flag)
}

// Loopback reports whether host, with or without a port, is this machine and nothing else.
func Loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Reachable returns an address that leads to a listener on this machine: one that listens everywhere is asked on loopback.
func Reachable(a net.Addr) string {
	addr, err := netip.ParseAddrPort(a.String())
	if err != nil || !addr.Addr().IsUnspecified() {
		return a.String()
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), addr.Port()).String()
}

// URL is how to ask a listener from this machine, and what to tell curl besides where it is a socket in the file system.
func URL(a net.Addr) (url, curl string) {
	if a.Network() == "unix" {
		return "http://localhost", "--unix-socket " + a.String() + " "
	}
	return "http://" + Reachable(a), ""
}

// Console is what an admin listener serves.
type Console struct {
	Shedder *shed.Shedder
	Pumpkin *pumpkin.Pumpkin
	// Metrics answers GET /metrics; nil leaves it out.
	Metrics http.Handler
	// Draining reports that the program is going away; nil means never.
	Draining func() bool
	// Sections are shown in the debug view beside the Shedder and the Pumpkin.
	Sections []middleware.DebugSection
}

// Handler serves the pumpkin's admin endpoint, GET /livez and /readyz, /metrics, /debug/spillway and the live page at
// /dashboard/. Probes are for everybody; what shows the state needs the token, but not from this machine.
func (c Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", c.Pumpkin.Admin())
	mux.Handle("GET /livez", middleware.Livez())
	mux.Handle("GET /readyz", middleware.Readyz(c.Draining))
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.look(c.Metrics))
	}
	sections := append([]middleware.DebugSection{{Name: "pumpkin", Read: func() any { return c.Pumpkin.Status() }}}, c.Sections...)
	mux.Handle("GET /debug/spillway", c.look(middleware.DebugHandler(c.Shedder, sections...)))
	mux.Handle("GET /dashboard/", c.look(middleware.Dashboard(c.Shedder)))
	return mux
}

// look shows what names no client to everybody on this machine: a person on call has no time to look for the token. A page
// that was tricked into asking by a made-up host name, and everybody else, needs the token.
func (c Console) look(free http.Handler) http.Handler {
	guarded := c.Pumpkin.Authorize(free)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Loopback(r.RemoteAddr) && Loopback(r.Host) && r.Header.Get("Authorization") == "" {
			free.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}
