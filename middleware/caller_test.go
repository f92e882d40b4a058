package middleware_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/spillway-go/spillway/middleware"
	"github.com/spillway-go/spillway/shed"
)

func TestCallersSeesWhoTheMiddlewareSees(t *testing.T) {
	s, err := shed.New(shed.Config{Clients: shed.Clients{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	who, err := middleware.Callers(s)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:1"
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	if c := who(r); c.By != "ip" || c.Client != "ip:203.0.113.7" || c.IP != netip.MustParseAddr("203.0.113.7") {
		t.Errorf("by address: %+v", c)
	}
	r.Header.Set("X-API-Key", "secret-key")
	if c := who(r); c.By != "api_key" || c.Client == "" || c.Client == "secret-key" || c.IP != netip.MustParseAddr("203.0.113.7") {
		t.Errorf("by key: %+v", c)
	}
	if _, err := s.Reload(shed.Config{Clients: shed.Clients{Identify: []string{"ip"}}}); err != nil {
		t.Fatal(err)
	}
	if c := who(r); c.Client != "ip:10.0.0.1" {
		t.Errorf("after a reload: %+v", c)
	}
}
