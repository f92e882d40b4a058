package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// The item that the tour raises.
const (
	item  = "tour"
	words = "Reports are off while we take the tour."
)

// pumpkin: an operator switches a feature off for a while and everybody is told so, in the same words.
func (t *tour) pumpkin(ctx context.Context) {
	t.title("An operator raises the pumpkin: reports are off, and everybody is told so.")
	t.check("before, a report is served", "", t.expect(ctx, http.MethodGet, "/api/report", "tour-report", http.StatusOK))
	raised := t.put(ctx, t.Token, http.StatusOK)
	t.check("the operator raises a banner", fmt.Sprintf("“%s”", words), raised)
	if raised == nil {
		t.check("a report is refused with 503 in the banner's words", "", t.refusedInWords(ctx))
		t.check("the poll shows the banner to every client", "", t.polled(ctx, true))
		t.check("everything else is served", "", t.expect(ctx, http.MethodGet, "/api/items", "tour-report", http.StatusOK))
	}
	_, _, err := t.ask(ctx, http.MethodDelete, "http://"+t.Admin+"/items/"+item, bearer(t.Token), nil, http.StatusNoContent)
	t.check("the operator lowers it again", "", err)
	t.check("reports are served at once", "", t.expect(ctx, http.MethodGet, "/api/report", "tour-report-2", http.StatusOK))
	t.check("the poll shows nothing any more", "", t.polled(ctx, false))
}

// admin: nobody else raises banners.
func (t *tour) admin(ctx context.Context) {
	t.title("Somebody who does not know the token tries to raise a banner.")
	t.check("refused with 401", "", t.put(ctx, "not-the-token-but-just-as-long-as-one-is", http.StatusUnauthorized))
	t.check("and no banner is there", "", t.polled(ctx, false))
}

// put raises the tour's banner under a token and expects the status.
func (t *tour) put(ctx context.Context, token string, status int) error {
	body, err := json.Marshal(map[string]any{
		"severity": "maintenance",
		"message":  map[string]string{"en": words},
		"features": map[string]any{"reports": map[string]any{"off": 1}},
		"ttl":      "1m",
		"reason":   "the demo's tour",
	})
	if err != nil {
		return err
	}
	h := bearer(token)
	h.Set("Content-Type", "application/json")
	_, _, err = t.ask(ctx, http.MethodPut, "http://"+t.Admin+"/items/"+item, h, body, status)
	return err
}

// refusedInWords: a report answers 503 with the reason, the banner's words and a time to come back.
func (t *tour) refusedInWords(ctx context.Context) error {
	h, body, err := t.ask(ctx, http.MethodGet, "http://"+t.Addr+"/api/report", apiKey("tour-report"), nil, http.StatusServiceUnavailable)
	if err != nil {
		return err
	}
	switch {
	case !bytes.Contains(body, []byte(words)):
		return fmt.Errorf("the refusal %s does not have the words", body)
	case !bytes.Contains(body, []byte("feature_off")):
		return fmt.Errorf("the refusal %s does not say feature_off", body)
	case h.Get("Retry-After") == "":
		return errors.New("the refusal does not say when to come back")
	}
	return nil
}

// polled: the poll shows the tour's banner, or does not.
func (t *tour) polled(ctx context.Context, want bool) error {
	_, body, err := t.ask(ctx, http.MethodGet, "http://"+t.Addr+"/pumpkin.json", nil, nil, http.StatusOK)
	if err != nil {
		return err
	}
	var document struct {
		Items []struct {
			ID      string            `json:"id"`
			Message map[string]string `json:"message"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return fmt.Errorf("the document cannot be read: %w", err)
	}
	shown := false
	for _, i := range document.Items {
		shown = shown || i.ID == item && i.Message["en"] == words
	}
	if shown != want {
		return fmt.Errorf("the document is %s", body)
	}
	return nil
}

// expect asks the app for path as a client and expects the status.
func (t *tour) expect(ctx context.Context, method, path, client string, status int) error {
	_, _, err := t.ask(ctx, method, "http://"+t.Addr+path, apiKey(client), nil, status)
	return err
}

// ask sends one request and returns the answer if it has the status.
func (t *tour) ask(ctx context.Context, method, url string, h http.Header, body []byte, status int) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for name, values := range h {
		r.Header[name] = slices.Clone(values)
	}
	answer, err := t.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return nil, nil, err
	}
	if answer.StatusCode != status {
		return nil, nil, fmt.Errorf("%s %s answers %d, want %d: %s", method, r.URL.Path, answer.StatusCode, status, bytes.TrimSpace(content))
	}
	return answer.Header, content, nil
}

func apiKey(client string) http.Header { return http.Header{"X-Api-Key": {client}} }

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
