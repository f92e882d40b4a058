package pumpkin_test

import (
	"fmt"

	"github.com/spillway-go/spillway/pumpkin"
)

// When the pressure has been high for ten seconds, clients are told, in words that were prepared; it comes down in steps.
func ExampleNewAuto() {
	p, err := pumpkin.New(pumpkin.Config{})
	if err != nil {
		panic(err)
	}
	defer p.Close()
	auto, err := pumpkin.NewAuto(p, pumpkin.AutoConfig{
		Rules: []pumpkin.AutoRule{{
			ID: "overload", Template: pumpkin.Degraded,
			When: map[string]pumpkin.Levels{"pressure": {High: 0.9, Low: 0.5}},
		}},
		Signals: func() map[string]float64 { return map[string]float64{"pressure": 0.2} }, // once a second
	})
	if err != nil {
		panic(err)
	}
	defer auto.Close()
	fmt.Println(p.Status().Auto[0].ID, "is", p.Status().Auto[0].State)
	// Output: overload is ok
}
