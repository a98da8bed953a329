// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" // GitHub still sends the old signature too
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
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
	repo   int64
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
	repository int64 // 0 for an event of none
}

// deliver signs a payload for an App's webhook. The caller holds mu.
func (g *GitHub) deliver(a *app, event string, payload object) Delivery {
	body, err := json.Marshal(payload)
	if err != nil {
		invalidUse("building a %s event: %v", event, err)
	}
	d := Delivery{GUID: traffic.NewUUID(), Event: event, Action: text(payload, "action"), Body: body, appID: a.ID,
		Header: http.Header{}}
	if r, isObject := payload["repository"].(object); isObject {
		d.Repo = text(r, "full_name")
		d.repo, _ = r["id"].(int64)
	}
	for k, v := range map[string]string{
		"Accept": "*/*", "Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/" + traffic.RandomHex(4)[:7],
		"X-GitHub-Event": event, "X-GitHub-Delivery": d.GUID, "X-GitHub-Hook-ID": itoa(a.HookID),
		"X-GitHub-Hook-Installation-Target-Type": "integration", "X-GitHub-Hook-Installation-Target-ID": itoa(a.ID),
	} {
		d.Header.Set(k, v)
	}
	if isHook(a) {
		d.Header.Set("X-GitHub-Hook-Installation-Target-Type", "repository")
		d.Header.Set("X-GitHub-Hook-Installation-Target-ID", itoa(d.repo))
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

// ID is what all copies of the delivery have in common.
func (d Delivery) ID() string { return d.GUID }

// Request builds the delivery's HTTP request, for tests that send it themselves.
func (d Delivery) Request(ctx context.Context, url string) (*http.Request, error) {
	return traffic.NewRequest(ctx, url, d.Header, d.Body)
}

// Deliver sends the delivery once and records the attempt. Like GitHub it gives up after 10
// seconds (Options.DeliveryTimeout), follows no redirect and never repeats by itself.
func (g *GitHub) Deliver(ctx context.Context, url string, d Delivery) (int, []byte, error) {
	g.mu.Lock()
	_, again := g.bodies[d.GUID]
	g.bodies[d.GUID] = d
	g.mu.Unlock()
	return g.attempt(ctx, url, d, again)
}

func (g *GitHub) attempt(ctx context.Context, url string, d Delivery, again bool) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, g.opts.DeliveryTimeout)
	defer cancel()
	start := time.Now()
	code, body, err := traffic.Post(ctx, url, d.Header, d.Body)
	rec := &DeliveryRecord{
		GUID: d.GUID, Event: d.Event, Action: d.Action, URL: url, At: g.now(), Duration: time.Since(start),
		StatusCode: code, Status: deliveryStatus(ctx, code, err), Redelivery: again, appID: d.appID, repository: d.repo,
	}
	defer g.lock()()
	rec.ID = g.core.NextID()
	g.deliveries = append(g.deliveries, rec)
	g.core.Notify()
	return code, body, err
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
