package main

import (
	"fmt"
	"io"

	"github.com/spillway-go/spillway/examples/internal/operate"
	"github.com/spillway-go/spillway/pumpkin"
)

// greet tells the person at the terminal where everything is and what to try.
func (d *demo) greet(w io.Writer) {
	app, _ := operate.URL(d.public.Addr())
	admin, curl := operate.URL(d.admin.Addr())
	fmt.Fprintf(w, `Spillway demo: an app that can do exactly 800 requests per second, protected.

  live page   %s/
  metrics     %[1]s/metrics
  admin       %s/ for the person on call; also %[2]s/dashboard/ and %[2]s/debug/spillway
`, app, admin)
	if curl != "" {
		fmt.Fprintf(w, "              through the socket %s\n", d.admin.Addr())
	}
	token := "$" + pumpkin.TokenEnv
	switch {
	case d.made != "":
		token = d.made
		fmt.Fprintf(w, "  token       %s (made up for this run; set %s for one of your own)\n", d.made, pumpkin.TokenEnv)
	case d.config.Pumpkin.TokenFile != "":
		token = "$TOKEN" // one of several
		if len(d.tokens) == 2 && d.tokens[0].Name == "admin" {
			token = "$(cat " + d.config.Pumpkin.TokenFile + ")"
		}
		fmt.Fprintf(w, "  token       from %s\n", d.config.Pumpkin.TokenFile)
	default:
		fmt.Fprintf(w, "  token       from %s\n", pumpkin.TokenEnv)
	}
	fmt.Fprintf(w, `
Each X-API-Key is a client of its own here, made up or not; without one it is the address.

Try:
  curl -i %s/api/items
  curl -s --parallel --parallel-immediate -o /dev/null -w '%%{http_code} ' '%[1]s/api/items?[1-25]'; echo
  curl %[4]s-X PUT %[2]s/items/try -H "Authorization: Bearer %[3]s" -H 'Content-Type: application/json' -d '{"severity":"major","message":{"en":"No reports today."},"features":{"reports":{"off":1}},"reason":"trying"}' && curl -i %[1]s/api/report

Stop with Ctrl-C.
`, app, admin, token, curl)
}
