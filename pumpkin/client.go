package pumpkin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pollTimeout is how long a poll may take, reading included.
	pollTimeout = 5 * time.Second
	// maxPolled is how much of an answer is read, in bytes: a document has at most 4 KiB.
	maxPolled = 64 << 10
)

// ClientConfig says whose document a Client follows.
type ClientConfig struct {
	// URL is the document's, such as "https://shop.example/pumpkin.json". It has no default.
	URL string
	// ID is the name by which the server knows this client, as in its log of refusals. With it the client leaves alone, of
	// what is off for a share, exactly what the server would refuse. Empty means a place in shares that is drawn at random
	// once and kept until Close.
	ID string
	// OnChange is called after each change of what Document or Blocked answer, one call after the other. It must not call
	// Close. Nil means that nobody wants to know.
	OnChange func(Document)
	// Transport makes the requests. Nil means http.DefaultTransport. The polls themselves must not pass through a transport
	// that asks this client.
	Transport http.RoundTripper
	// Logger is told when polls begin to fail and when they succeed again. Nil means slog.Default().
	Logger *slog.Logger
}

// Client follows the document of a server: it polls at the pace of [Schedule] and answers at any moment, from memory, what
// is off. While polls fail it keeps what it knows, and it never goes back to an older revision. It is safe for concurrent
// use; Blocked and Document take no lock. Make it with NewClient, end it with Close.
type Client struct {
	config ClientConfig
	client *http.Client
	random func() float64
	place  float64 // of a client without ID
	start  time.Time
	stop   context.CancelFunc
	ended  chan struct{}

	view                        atomic.Pointer[clientView] // nil until the first document
	answered, unchanged, failed atomic.Uint64

	mu       sync.Mutex
	schedule Schedule
	heard    Document // the newest epoch and rev that were heard of
	lastGood time.Time
	err      error
	wake     chan struct{} // holds a token when schedule has changed
}

// NewClient starts to follow c.URL. The errors are about the configuration; a server that does not answer is none.
func NewClient(c ClientConfig) (*Client, error) { return newClient(c, rand.Float64) }

func newClient(c ClientConfig, random func() float64) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("pumpkin: client: URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("pumpkin: client: URL is %q; it must be absolute, such as https://shop.example/pumpkin.json", c.URL)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	ctx, stop := context.WithCancel(context.Background())
	client := &Client{
		config: c, client: &http.Client{Transport: c.Transport}, random: random, place: random(),
		start: time.Now(), stop: stop, ended: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	client.schedule.Start(0, random())
	go client.run(ctx)
	return client, nil
}

// Close ends the polling and waits for a poll or a call of OnChange under way. What is known stays known. A second Close
// does nothing.
func (c *Client) Close() {
	c.stop()
	<-c.ended
}

// Document returns the document in force, and false while none has been read. The caller must not change its maps.
func (c *Client) Document() (Document, bool) {
	v := c.view.Load()
	if v == nil {
		return Document{}, false
	}
	return v.doc, true
}

// Blocked reports whether this client should leave feature alone: the document says that it is off, for all or for a share
// that the client is in, or it is on again and the client's turn to come back has not come. The empty feature is never off.
// It allocates nothing.
func (c *Client) Blocked(feature string) bool {
	v := c.view.Load()
	if v == nil || feature == "" {
		return false
	}
	if s := v.shareOf(feature); s > 0 && c.placeIn(v.key, feature) < s {
		return true
	}
	if len(v.holds) == 0 {
		return false
	}
	now := c.now()
	for _, h := range v.holds {
		if now < h.until && c.placeIn(h.key, feature) < h.shareOf(feature) {
			return true
		}
	}
	return false
}

// placeIn is where the client stands in a share.
func (c *Client) placeIn(key uint64, feature string) float64 {
	if c.config.ID == "" {
		return c.place
	}
	return placeOf(key, feature, c.config.ID)
}

// Seen takes the value of the header Pumpkin-Rev of any response of the server. A revision that is newer than all that was
// heard of brings the next poll forward, once: active clients learn of a change soon, and without a request more than
// poll_after allows. Anything else is ignored.
func (c *Client) Seen(rev string) {
	epoch, number, ok := strings.Cut(rev, ".")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || len(epoch) != ulidLength {
		return
	}
	d := Document{Epoch: epoch, Rev: n}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.heard.olderThan(d) {
		return
	}
	c.heard = d
	c.schedule.Heard(c.now(), c.random())
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// ulidLength is the length of an epoch.
const ulidLength = 26

// ClientStatus is a look at a Client. All counts are since NewClient.
type ClientStatus struct {
	Epoch string `json:"epoch"`
	Rev   uint64 `json:"rev"`
	// Answered counts polls answered with a document, Unchanged those answered 304, Failed all others.
	Answered  uint64 `json:"answered"`
	Unchanged uint64 `json:"unchanged"`
	Failed    uint64 `json:"failed"`
	// FailuresInARow is how many polls have failed since the last answer, and Error says what was wrong with the last of
	// them.
	FailuresInARow int    `json:"failures_in_a_row"`
	Error          string `json:"error,omitempty"`
	// Age is how old the last answer is, in seconds: how stale what the client knows may be. -1 means that there is none.
	Age float64 `json:"age"`
}

// Status returns what is known and what was counted.
func (c *Client) Status() ClientStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ClientStatus{
		Answered: c.answered.Load(), Unchanged: c.unchanged.Load(), Failed: c.failed.Load(),
		FailuresInARow: c.schedule.Failures(), Age: -1,
	}
	if v := c.view.Load(); v != nil {
		s.Epoch, s.Rev, s.Age = v.doc.Epoch, v.doc.Rev, time.Since(c.lastGood).Seconds()
	}
	if c.err != nil {
		s.Error = c.err.Error()
	}
	return s
}

// now is the time since the client's start: monotonic, whatever the wall clock does.
func (c *Client) now() time.Duration { return time.Since(c.start) }

// errNoAnswer wraps what is wrong with an answer.
var errNoAnswer = errors.New("no document")

// fetch polls once. A nil document without an error means that nothing has changed.
func (c *Client) fetch(ctx context.Context, tag string) (doc *Document, newTag string, retryAfter time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.URL, nil)
	if err != nil {
		return nil, "", 0, err
	}
	r.Header.Set("Accept", "application/json")
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	response, err := c.client.Do(r)
	if err != nil {
		return nil, "", 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPolled+1)) // read to the end, so that the connection serves again
	switch {
	case response.StatusCode == http.StatusNotModified && tag != "":
		return nil, tag, 0, nil
	case response.StatusCode != http.StatusOK:
		return nil, "", retryAfterOf(response.Header), fmt.Errorf("%w: status %d", errNoAnswer, response.StatusCode)
	case err != nil:
		return nil, "", 0, err
	case len(body) > maxPolled:
		return nil, "", 0, fmt.Errorf("%w: the answer has more than %d bytes", errNoAnswer, maxPolled)
	}
	d, err := parseDocument(body)
	if err != nil {
		return nil, "", 0, err
	}
	return &d, response.Header.Get("Etag"), 0, nil
}

// retryAfterOf reads Retry-After: seconds, or a date. What is neither is 0.
func retryAfterOf(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(date))
	}
	return 0
}
