// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// ErrHookDisabled is returned for a delivery that GitLab does not send,
// because its hook is paused or disabled.
var ErrHookDisabled = errors.New("gitlab: Hook disabled")

// Delivery is a webhook request, ready to be sent any number of times.
type Delivery struct {
	Key     string // the Idempotency-Key
	Event   string // such as PushHook
	Project string // full path
	Header  http.Header
	Body    []byte
	hook    int64
}

// DeliveryRecord is one attempt to deliver, as GitLab's "Recent events" has it.
type DeliveryRecord struct {
	ID         int64
	HookID     int64
	Key        string
	Event      string
	URL        string
	At         time.Time
	Duration   time.Duration
	StatusCode int    // 0 when there was no answer
	Status     string // the code, or "internal error"
	Resent     bool
	header     http.Header
	body       []byte
}

// deliver makes a payload a delivery of a hook. The caller holds mu.
func (g *GitLab) deliver(h *hook, event string, payload any) Delivery {
	body, err := json.Marshal(payload)
	if err != nil {
		invalidUse("building a %s: %v", event, err)
	}
	d := Delivery{
		Key: traffic.NewUUID(), Event: event, Project: h.project.path, Body: body, hook: h.id, Header: http.Header{},
	}
	for k, v := range map[string]string{
		"Accept": "*/*", "Content-Type": "application/json", "User-Agent": "GitLab/18.6.0", "Idempotency-Key": d.Key,
		"X-Gitlab-Event": event, "X-Gitlab-Instance": g.web(), "X-Gitlab-Webhook-UUID": traffic.NewUUID(),
		"X-Gitlab-Event-UUID": traffic.NewUUID(),
	} {
		d.Header.Set(k, v)
	}
	d.SetToken(h.token)
	return d
}

// SetToken changes the secret token, for tests that need a wrong one; an
// empty one removes the header.
func (d *Delivery) SetToken(token string) {
	d.Header = d.Header.Clone()
	d.Header.Del("X-Gitlab-Token")
	if token != "" {
		d.Header.Set("X-Gitlab-Token", token)
	}
}

// ID is what all copies of the delivery have in common.
func (d Delivery) ID() string { return d.Key }

// Request builds the delivery's HTTP request, for tests that send it themselves.
func (d Delivery) Request(ctx context.Context, url string) (*http.Request, error) {
	return traffic.NewRequest(ctx, url, d.Header, d.Body)
}

// Deliver sends the delivery once, to url or (if that is empty) to where its hook points, and
// records the attempt. Like GitLab it gives up after 10 seconds (Options.DeliveryTimeout), counts
// everything but 2xx and 3xx as a failure of the hook, and sends nothing for a hook that is paused
// or disabled: then it returns ErrHookDisabled.
func (g *GitLab) Deliver(ctx context.Context, url string, d Delivery) (int, []byte, error) {
	return g.attempt(ctx, url, d, false)
}

// TestHook sends a delivery as "Test" in the settings does: even when the hook
// is paused or disabled, which ends if the receiver answers well.
func (g *GitLab) TestHook(ctx context.Context, url string, d Delivery) (int, []byte, error) {
	return g.attempt(ctx, url, d, true)
}

// Resend sends a delivery again, as "Resend Request" and its API do: the same
// body and Idempotency-Key, with other UUIDs.
func (g *GitLab) Resend(ctx context.Context, idempotencyKey string) (int, []byte, error) {
	g.mu.Lock()
	d, known := g.sent[idempotencyKey]
	url := ""
	for _, r := range g.deliveries {
		if r.Key == idempotencyKey {
			url = r.URL
		}
	}
	g.mu.Unlock()
	if !known {
		return 0, nil, fmt.Errorf("resending %s: it was never delivered", idempotencyKey)
	}
	d.Header = d.Header.Clone()
	d.Header.Set("X-Gitlab-Webhook-UUID", traffic.NewUUID())
	d.Header.Set("X-Gitlab-Event-UUID", traffic.NewUUID())
	return g.attempt(ctx, url, d, false)
}

func (g *GitLab) attempt(ctx context.Context, url string, d Delivery, force bool) (int, []byte, error) {
	g.mu.Lock()
	h := g.mustHook(d.hook)
	if !force && h.alert(g) != HookExecutable {
		g.mu.Unlock()
		return 0, nil, ErrHookDisabled
	}
	_, again := g.sent[d.Key]
	g.sent[d.Key] = d
	url = cmp.Or(url, h.url)
	g.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, g.opts.DeliveryTimeout)
	defer cancel()
	start := time.Now()
	code, body, err := traffic.Post(ctx, url, d.Header, d.Body)
	rec := &DeliveryRecord{
		HookID: d.hook, Key: d.Key, Event: d.Event, URL: url, At: g.now(), Duration: time.Since(start),
		StatusCode: code, Status: itoa(int64(code)), Resent: again, header: d.Header, body: d.Body,
	}
	if err != nil {
		rec.Status = "internal error"
	}
	defer g.lock()()
	if force && err == nil && code/100 == 2 {
		h.failures, h.until = 0, time.Time{}
	}
	h.settle(g, err == nil && (code/100 == 2 || code/100 == 3))
	rec.ID = g.core.NextID()
	g.deliveries = append(g.deliveries, rec)
	g.core.Notify()
	return code, body, err
}

// Deliveries lists the attempts so far.
func (g *GitLab) Deliveries() []DeliveryRecord {
	defer g.lock()()
	return traffic.Copies(g.deliveries)
}
