package redisstore

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// quietSentinels keeps what go-redis says of sentinels from being said again and again: while none answers it writes some lines
// for every try. Its logger is one for the whole program, so this is done when the first client of sentinels is opened and never
// again: a program that sets its own afterwards keeps it, and one that brings its clients along is not concerned. Of a server and of
// a cluster there is nothing to keep quiet, see dialAnew.
var quietSentinels = sync.OnceFunc(func() {
	out := log.New(os.Stderr, "redis: ", log.LstdFlags)
	redis.SetLogger(&terse{say: func(text string) { out.Print(text) }})
})

// again is after how long the same is said once more.
const again = time.Minute

// terse says what is new, and what is not at most once a minute.
type terse struct {
	say func(text string)

	mu   sync.Mutex
	said map[string]saying // by format, of which there are a few dozen
}

type saying struct {
	text string
	at   time.Time
}

// Printf is what the client calls.
func (t *terse) Printf(_ context.Context, format string, v ...any) {
	text, now := fmt.Sprintf(format, v...), time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.said[format]; ok && last.text == text && now.Sub(last.at) < again {
		return
	}
	if t.said == nil {
		t.said = make(map[string]saying)
	}
	t.said[format] = saying{text, now}
	t.say(text)
}
