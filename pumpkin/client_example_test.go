package pumpkin_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"

	"github.com/spillway-go/spillway/pumpkin"
)

// A service that calls another one follows its document, and leaves alone what is off there.
func ExampleClient() {
	quiet := slog.New(slog.DiscardHandler)
	p, err := pumpkin.New(pumpkin.Config{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	err = p.Put("on-call", "search", pumpkin.Entry{
		Severity: pumpkin.Major,
		Message:  map[string]string{"en": "Search is off while we rebuild its index."},
		Features: map[string]pumpkin.Feature{"search": {Off: 1}},
		Reason:   "index rebuild",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	shop := httptest.NewServer(p.Public())
	defer shop.Close()

	known := make(chan struct{}, 1)
	client, err := pumpkin.NewClient(pumpkin.ClientConfig{
		URL:      shop.URL + "/pumpkin.json",
		OnChange: func(pumpkin.Document) { known <- struct{}{} },
		Logger:   quiet,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	<-known // the first poll comes within 5 s; until then nothing is blocked
	fmt.Println("search:", client.Blocked("search"))
	fmt.Println("orders:", client.Blocked("orders"))
	// Output:
	// search: true
	// orders: false
}
