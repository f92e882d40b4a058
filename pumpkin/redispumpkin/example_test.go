package redispumpkin_test

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/pumpkin"
	"github.com/spillway-go/spillway/pumpkin/redispumpkin"
)

// Every instance that does this shows the same banner. Nobody listens at this address, so what is written stays here, marked,
// until somebody does.
func Example() {
	quiet := slog.New(slog.DiscardHandler)
	p, err := pumpkin.New(pumpkin.Config{Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer p.Close()
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, DialTimeout: 200 * time.Millisecond,
	})
	defer client.Close()
	shared, err := redispumpkin.Join(p, redispumpkin.Config{Client: client, Namespace: "shop", Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer shared.Close()

	err = p.Put("ada", "search", pumpkin.Entry{
		Severity: pumpkin.Major, Message: map[string]string{"en": "Search is off."}, Reason: "index rebuild",
	})
	fmt.Println(err, len(p.Document().Items), "in force,", p.Status().Unshared, "not shared yet")
	// Output: <nil> 1 in force, 1 not shared yet
}
