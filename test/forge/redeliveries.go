// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// deliveryLogAge is for how long GitHub has deliveries in its log.
const deliveryLogAge = 3 * 24 * time.Hour

// SetWebhookURL sets where redeliveries of the App go to. Without it, each goes where the last
// attempt went.
func (g *GitHub) SetWebhookURL(appID int64, url string) {
	defer g.lock()()
	if g.apps[appID] == nil {
		invalidUse("SetWebhookURL: no app %d", appID)
	}
	g.apps[appID].webhook = url
}

// Redeliver sends a delivery again: the same GUID, body and signature, to the App's webhook.
func (g *GitHub) Redeliver(ctx context.Context, guid string) (int, []byte, error) {
	g.mu.Lock()
	d, url := g.again(guid)
	g.mu.Unlock()
	if url == "" {
		return 0, nil, fmt.Errorf("redelivering %s: it was never delivered", guid)
	}
	return g.attempt(ctx, url, d, true)
}

// again returns a delivery and where it goes to, "" if there never was such a one. The caller holds
// mu.
func (g *GitHub) again(guid string) (d Delivery, url string) {
	d, known := g.bodies[guid]
	if !known {
		return d, ""
	}
	if a := g.apps[d.appID]; a != nil && a.webhook != "" {
		return d, a.webhook
	}
	for _, r := range g.deliveries {
		if r.GUID == guid {
			url = r.URL
		}
	}
	return d, url
}

// Deliveries lists the attempts so far.
func (g *GitHub) Deliveries() []DeliveryRecord {
	defer g.lock()()
	return traffic.Copies(g.deliveries)
}

// logged are the attempts of the caller's App that GitHub still has, newest first.
func logged(c *call) []*DeliveryRecord {
	var list []*DeliveryRecord
	for _, d := range slices.Backward(c.g.deliveries) {
		if d.appID == c.app.ID && c.at.Sub(d.At) < deliveryLogAge {
			list = append(list, d)
		}
	}
	return list
}

// listDeliveries pages by a cursor that names the first attempt of the page. Like GitHub it knows
// no page numbers.
func listDeliveries(c *call) answer {
	q := c.r.URL.Query()
	all := logged(c)
	from := 0
	if cursor := q.Get("cursor"); cursor != "" {
		from = slices.IndexFunc(all, func(d *DeliveryRecord) bool { return cursor == cursorOf(d) })
		if from < 0 {
			return invalidRequest(c.rt.doc, []string{"Invalid cursor."})
		}
	}
	to := min(from+min(positive(q.Get("per_page"), defaultPerPage), maxPerPage), len(all))
	list := []object{}
	for _, d := range all[from:to] {
		list = append(list, d.object())
	}
	a := ok(list)
	if to < len(all) {
		q.Set("cursor", cursorOf(all[to]))
		a = a.With("Link", fmt.Sprintf("<%s/api/v3%s?%s>; rel=%q", c.g.core.BaseURL, c.r.URL.EscapedPath(), q.Encode(),
			"next"))
	}
	return a
}

// cursorOf is opaque to callers.
func cursorOf(d *DeliveryRecord) string { return "v1_" + strconv.FormatInt(d.ID, 36) }

func (d *DeliveryRecord) object() object {
	o := object{"id": d.ID, "guid": d.GUID, "delivered_at": d.At.Format(time.RFC3339), "redelivery": d.Redelivery,
		"duration": d.Duration.Seconds(), "status": d.Status, "status_code": d.StatusCode, "event": d.Event,
		"action": nil, "installation_id": nil, "repository_id": nil}
	if d.Action != "" {
		o["action"] = d.Action
	}
	if d.repository != 0 {
		o["repository_id"] = d.repository
	}
	return o
}

// redeliver answers 202 at once and delivers afterwards.
func redeliver(c *call) answer {
	for _, d := range logged(c) {
		if d.ID == c.number("id") {
			delivery, url := c.g.again(d.GUID)
			go func() { _, _, _ = c.g.attempt(context.Background(), url, delivery, true) }()
			return answer{Status: http.StatusAccepted, Body: object{}}
		}
	}
	return notFound(c.rt.doc)
}
