package middleware

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/spillway-go/spillway/middleware/internal/edge"
	"github.com/spillway-go/spillway/shed"
)

// Caller is who sent a request, as far as shed.Clients makes that known. The zero value is nobody.
type Caller struct {
	// Client is the name that limits per client go by. It holds no secret, and names an API key that is not verified by a hash
	// that differs from process to process.
	Client string
	// By is how the client is known: "api_key", "ip", or empty.
	By string
	// IP is the address, of IPv6 the prefix that counts; the zero Addr if it is not known.
	IP netip.Addr
}

// Callers returns a function that tells who sends a request before the middleware is asked: for routing, and for logs. It sees
// what Shed sees, follows each Reload, and knows no principals.
func Callers(s *shed.Shedder) (func(*http.Request) Caller, error) {
	e, err := edge.New(edge.Config{Shedder: s, Logger: slog.New(slog.DiscardHandler)}) // the middleware says what is left open
	if err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	return func(r *http.Request) Caller {
		id := e.Identify(r)
		return Caller{Client: id.Client, By: id.By, IP: id.IP}
	}, nil
}
