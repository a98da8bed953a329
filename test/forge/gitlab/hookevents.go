// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

const (
	// eventsPerPage is the most of a hook's events that GitLab shows at once; more is refused.
	eventsPerPage = 20
	// eventsKept is how old they are at most.
	eventsKept = 7 * 24 * time.Hour
	// resendsPerMinute is for a user and a project.
	resendsPerMinute = 5
)

// listHookEvents shows the attempts of a hook, newest first, all or those with a status that is
// asked for.
func listHookEvents(c *call) answer {
	h := c.hook()
	p := c.readPage()
	if c.text("per_page") != "" && p.per > eventsPerPage {
		return badParameter("per_page does not have a valid value")
	}
	wanted, valid := statusesOf(c.text("status"))
	if !valid {
		return badParameter("status does not have a valid value")
	}
	var list []*DeliveryRecord
	for _, d := range slices.Backward(c.g.deliveries) {
		if d.HookID == h.id && c.g.now().Sub(d.At) < eventsKept && d.hasStatus(wanted) {
			list = append(list, d)
		}
	}
	return paged(c, list, func(d *DeliveryRecord) object { return d.json() })
}

// statusesOf are those that a list asks for; nil is all.
func statusesOf(text string) (wanted []string, valid bool) {
	if text == "" {
		return nil, true
	}
	wanted = strings.Split(text, ",")
	return wanted, !slices.ContainsFunc(wanted, func(status string) bool {
		return http.StatusText(numberIn(status)) == "" &&
			!slices.Contains([]string{"successful", "client_failure", "server_failure"}, status)
	})
}

func numberIn(text string) int {
	n := 0
	for _, digit := range text {
		if digit < '0' || digit > '9' || n > 999 {
			return 0
		}
		n = 10*n + int(digit-'0')
	}
	return n
}

// hasStatus reports whether an attempt is one of those that are wanted; nothing wanted is all. No
// answer counts as the server's failure.
func (d *DeliveryRecord) hasStatus(wanted []string) bool {
	kind := map[int]string{
		0: "server_failure", 2: "successful", 4: "client_failure", 5: "server_failure",
	}[d.StatusCode/100]
	return wanted == nil || slices.Contains(wanted, kind) || slices.Contains(wanted, d.Status)
}

func (d *DeliveryRecord) json() object {
	header := object{}
	for k := range d.header {
		header[k] = d.header.Get(k)
	}
	if d.header.Get("X-Gitlab-Token") != "" {
		header["X-Gitlab-Token"] = "[REDACTED]"
	}
	trigger := map[string]string{PushHook: "push_hooks", TagPushHook: "tag_push_hooks",
		MergeRequestHook: "merge_request_hooks", NoteHook: "note_hooks"}[d.Event]
	return object{
		"id": d.ID, "url": d.URL, "trigger": trigger, "request_headers": header, "request_data": redacted(d.body),
		"response_headers": object{}, "response_body": "", "execution_duration": d.Duration.Seconds(),
		"response_status": d.Status, "created_at": stamp(d.At),
	}
}

// redacted is a payload as the log keeps it, and as it is sent again: without e-mail addresses.
func redacted(body []byte) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var payload any
	if decoder.Decode(&payload) != nil {
		return body
	}
	out, err := json.Marshal(withoutAddresses(payload))
	if err != nil {
		invalidUse("redacting a payload: %v", err)
	}
	return out
}

func withoutAddresses(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = withoutAddresses(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutAddresses(v[i])
		}
	case string:
		if at, err := mail.ParseAddress(v); err == nil && at.Address == v {
			return "[REDACTED]"
		}
	}
	return value
}

// resendHookEvent makes another attempt while the caller waits, and answers what the receiver has
// answered.
func resendHookEvent(c *call) answer {
	g := c.g
	h := c.hook()
	if c.resendsTooOften() {
		return answer{Status: http.StatusTooManyRequests, Body: object{
			"message": object{"error": "This endpoint has been requested too many times. Try again later."}}}
	}
	i := slices.IndexFunc(g.deliveries,
		func(d *DeliveryRecord) bool { return d.HookID == h.id && d.ID == c.number("event") })
	if i < 0 || g.now().Sub(g.deliveries[i].At) >= eventsKept {
		return noRecord()
	}
	was := g.deliveries[i]
	if was.URL != h.url {
		return refuse(http.StatusUnprocessableEntity, "The hook URL has changed, and this log entry cannot be retried")
	}
	d := Delivery{Key: was.Key, Event: was.Event, Project: h.project.path, Header: was.header.Clone(),
		Body: redacted(was.body), hook: h.id}
	d.Header.Set("X-Gitlab-Webhook-UUID", traffic.NewUUID())
	d.Header.Set("X-Gitlab-Event-UUID", traffic.NewUUID())
	d.SetToken(h.token)

	g.mu.Unlock() // while others go on
	code, _, err := g.attempt(c.r.Context(), "", d, false)
	g.mu.Lock()
	switch {
	case errors.Is(err, ErrHookDisabled):
		return refuse(http.StatusUnprocessableEntity, "Hook disabled")
	case err != nil:
		return refuse(http.StatusUnprocessableEntity, err.Error())
	}
	return created(object{"response_status": code})
}

// resendsTooOften counts the call against the minute's limit.
func (c *call) resendsTooOften() bool {
	name, window := "resend "+c.project.path+" "+c.user.username, c.g.opts.Now().Unix()/60
	u := c.g.usage[name]
	if u == nil || u.window != window {
		u = &usage{window: window}
		c.g.usage[name] = u
	}
	u.used++
	return u.used > resendsPerMinute
}
