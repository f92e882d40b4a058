package gates

import (
	"context"
	"time"
)

// MaxWait is how long a request may wait for its turn, in those gates that let requests wait.
const MaxWait = 200 * time.Millisecond

// End says how admitted work ended.
type End uint8

// The ends of admitted work.
const (
	Good   End = iota // answered while the client was there
	Late              // answered after the client had left
	Failed            // refused by the backend
)

// Leave gives back what Enter gave. It is called once.
type Leave func(End)

// Gate is one instance of an overload control.
type Gate struct {
	// Enter asks to run and may wait; ctx ends when the client leaves. It returns how to leave, or false.
	Enter func(ctx context.Context) (Leave, bool)
	// Limit tells how many may run at once now, or 0 when the gate has no such number.
	Limit func() int
	// Close ends the goroutines of the gate.
	Close func()
}

// Kind is an overload control and how to make one.
type Kind struct {
	Name, Module string
	// Oracle says that the gate is told the number of slots, which in operation nobody knows.
	Oracle bool
	// Blind says that the gate acts only when processors are busy, which a backend that waits does not make them.
	Blind bool
	// Open makes a cold gate for a backend with so many slots; only an oracle looks at the number.
	Open func(slots int) (*Gate, error)
}

// Kinds lists all of them: first no protection at all, last Spillway.
func Kinds() []Kind {
	return []Kind{
		{Name: "none", Open: openNone},
		{Name: "semaphore of the slots", Module: "golang.org/x/sync", Oracle: true, Open: openSemaphore},
		{Name: "gcl Gradient2", Module: gcl, Open: openGradient2},
		{Name: "gcl Vegas", Module: gcl, Open: openVegas},
		{Name: "gcl AIMD", Module: gcl, Open: openAIMD},
		{Name: "failsafe-go", Module: failsafeGo, Open: openFailsafe},
		{Name: "failsafe-go, queue", Module: failsafeGo, Open: openFailsafeQueue},
		{Name: "aegis BBR", Module: "github.com/go-kratos/aegis", Blind: true, Open: openBBR},
		{Name: "go-zero shedder", Module: "github.com/zeromicro/go-zero", Blind: true, Open: openZero},
		{Name: "Spillway", Module: "github.com/spillway-go/spillway", Open: openSpillway},
	}
}

func noLimit() int { return 0 }

func nothing() {}
