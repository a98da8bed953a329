// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1" // GitHub still sends the old signature too
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"time"
)

// Delivery is a signed webhook request, ready to be sent any number of times.
type Delivery struct {
	GUID   string
	Event  string
	Action string
	Repo   string // owner/name; empty where the event has none
	Header http.Header
	Body   []byte
	appID  int64
}

// DeliveryRecord is one attempt to deliver, as GitHub's delivery log has it.
type DeliveryRecord struct {
	ID         int64
	GUID       string
	Event      string
	Action     string
	URL        string
	At         time.Time
	Duration   time.Duration
	StatusCode int    // 0 when there was no answer
	Status     string // "OK" or what went wrong
	Redelivery bool
	appID      int64
}

// maxDeliveryAnswer is how much of a receiver's answer is kept.
const maxDeliveryAnswer = 1 << 20

// deliver signs a payload for an App's webhook. The caller holds mu.
func (g *GitHub) deliver(a *app, event string, payload object) Delivery {
	body, err := json.Marshal(payload)
	if err != nil {
		mistake("building a %s event: %v", event, err)
	}
	d := Delivery{GUID: newGUID(), Event: event, Action: text(payload, "action"), Body: body, appID: a.ID, Header: http.Header{}}
	if r, isObject := payload["repository"].(object); isObject {
		d.Repo = text(r, "full_name")
	}
	for k, v := range map[string]string{
		"Accept": "*/*", "Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/" + randomHex(4)[:7],
		"X-GitHub-Event": event, "X-GitHub-Delivery": d.GUID, "X-GitHub-Hook-ID": itoa(a.HookID),
		"X-GitHub-Hook-Installation-Target-Type": "integration", "X-GitHub-Hook-Installation-Target-ID": itoa(a.ID),
	} {
		d.Header.Set(k, v)
	}
	d.Sign(a.WebhookSecret)
	return d
}

// Sign signs the body anew, for tests that change the body or need a wrong
// secret. An empty secret removes the signatures, as GitHub sends none then.
func (d *Delivery) Sign(secret string) {
	d.Header = d.Header.Clone()
	d.Header.Del("X-Hub-Signature-256")
	d.Header.Del("X-Hub-Signature")
	if secret == "" {
		return
	}
	d.Header.Set("X-Hub-Signature-256", "sha256="+mac(sha256.New, secret, d.Body))
	d.Header.Set("X-Hub-Signature", "sha1="+mac(sha1.New, secret, d.Body))
}

func mac(h func() hash.Hash, secret string, body []byte) string {
	m := hmac.New(h, []byte(secret))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}

func newGUID() string {
	h := randomHex(16)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// Request builds the delivery's HTTP request, for tests that send it themselves.
func (d Delivery) Request(ctx context.Context, url string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return nil, fmt.Errorf("building delivery %s: %w", d.GUID, err)
	}
	req.Header = d.Header.Clone()
	return req, nil
}

// Deliver sends the delivery once and records the attempt. Like GitHub it
// gives up after 10 seconds (Options.DeliveryTimeout), follows no redirect
// and never repeats by itself.
func (g *GitHub) Deliver(ctx context.Context, url string, d Delivery) (int, []byte, error) {
	g.mu.Lock()
	_, again := g.bodies[d.GUID]
	g.bodies[d.GUID] = d
	g.mu.Unlock()
	return g.attempt(ctx, url, d, again)
}

// Redeliver sends a delivery again: the same GUID, body and signature, to the
// URL of the last attempt.
func (g *GitHub) Redeliver(ctx context.Context, guid string) (int, []byte, error) {
	g.mu.Lock()
	d, known := g.bodies[guid]
	url := ""
	for _, r := range g.deliveries {
		if r.GUID == guid {
			url = r.URL
		}
	}
	g.mu.Unlock()
	if !known || url == "" {
		return 0, nil, fmt.Errorf("redelivering %s: it was never delivered", guid)
	}
	return g.attempt(ctx, url, d, true)
}

func (g *GitHub) attempt(ctx context.Context, url string, d Delivery, again bool) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, g.opts.DeliveryTimeout)
	defer cancel()
	start := time.Now()
	code, body, err := post(ctx, url, d)
	rec := &DeliveryRecord{
		GUID: d.GUID, Event: d.Event, Action: d.Action, URL: url, At: g.now(), Duration: time.Since(start),
		StatusCode: code, Status: deliveryStatus(ctx, code, err), Redelivery: again, appID: d.appID,
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	rec.ID = g.nextID()
	g.deliveries = append(g.deliveries, rec)
	g.notify()
	return code, body, err
}

func post(ctx context.Context, url string, d Delivery) (int, []byte, error) {
	req, err := d.Request(ctx, url)
	if err != nil {
		return 0, nil, err
	}
	// A connection of its own: a receiver that was restarted must not fail the
	// next delivery through a connection kept from before.
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("delivering %s: %w", d.GUID, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDeliveryAnswer))
	if err != nil {
		return resp.StatusCode, body, fmt.Errorf("delivering %s: reading the answer: %w", d.GUID, err)
	}
	return resp.StatusCode, body, nil
}

func deliveryStatus(ctx context.Context, code int, err error) string {
	switch {
	case ctx.Err() != nil:
		return "timed out"
	case err != nil:
		return "failed to connect to host"
	case code/100 == 2:
		return "OK"
	}
	return "Invalid HTTP Response: " + itoa(int64(code))
}

// Deliveries lists the attempts so far.
func (g *GitHub) Deliveries() []DeliveryRecord {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []DeliveryRecord
	for _, d := range g.deliveries {
		out = append(out, *d)
	}
	return out
}

func listDeliveries(c *call) answer {
	list := []object{}
	for _, d := range slices.Backward(c.g.deliveries) {
		if d.appID == c.app.ID {
			list = append(list, object{"id": d.ID, "guid": d.GUID, "delivered_at": d.At.Format(time.RFC3339),
				"redelivery": d.Redelivery, "duration": d.Duration.Seconds(), "status": d.Status,
				"status_code": d.StatusCode, "event": d.Event, "action": d.Action})
		}
	}
	return paged(c, list, nil)
}
