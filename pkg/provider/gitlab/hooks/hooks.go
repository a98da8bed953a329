// SPDX-License-Identifier: Apache-2.0

// Package hooks reads GitLab's log of a project's webhooks, and requests that GitLab sends events
// again.
package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
)

const (
	// PerPage is GitLab's maximum for a page of a webhook's events. Each event has its whole
	// payload.
	PerPage = 20
	// serverFailure is GitLab's name of 5xx answers and of no answer.
	serverFailure = "server_failure"
	// saidDisabled is GitLab's message when it does not resend because the webhook is paused or
	// disabled.
	saidDisabled = "Hook disabled"
	// saidMoved is its message when the webhook has another URL than at that time.
	saidMoved = "The hook URL has changed, and this log entry cannot be retried"
)

// Log implements provider.HookLog for one project. The calls need the role Maintainer
// (https://docs.gitlab.com/api/project_webhooks).
type Log struct {
	client *gl.Client
	path   string // of the project in the API
}

// Of returns the webhooks of a project. It makes no call.
func Of(client *gl.Client, project string) *Log {
	return &Log{client: client, path: "projects/" + gl.PathEscape(project)}
}

// Hooks implements provider.HookLog.
func (l *Log) Hooks(ctx context.Context) ([]provider.Hook, error) {
	const what = "listing the project's webhooks"
	type hook struct {
		ID      int64     `json:"id"`
		Project int64     `json:"project_id"`
		URL     string    `json:"url"`
		Alert   string    `json:"alert_status"`
		Until   time.Time `json:"disabled_until"`
		Pushes  bool      `json:"push_events"`
		Filter  string    `json:"push_events_branch_filter"`
		Pulls   bool      `json:"merge_requests_events"`
	}
	all, err := api.List(ctx, what, func(options ...gl.RequestOptionFunc) ([]hook, *gl.Response, error) {
		var page []hook
		resp, err := l.call(http.MethodGet, l.path+"/hooks", &page, options...)
		return page, resp, err
	})
	if err != nil {
		return nil, provider.Failed(what, err)
	}
	hooks := make([]provider.Hook, 0, len(all))
	for _, h := range all {
		if h.ID <= 0 || h.Project <= 0 {
			return nil, api.NoAnswer(what)
		}
		hooks = append(
			hooks,
			provider.Hook{
				ID:      h.ID,
				Project: h.Project,
				URL:     h.URL,
				State:   hookStateOf(h.Alert),
				Until:   h.Until,
				Pushes:  h.Pushes && h.Filter == "",
				Pulls:   h.Pulls,
			},
		)
	}
	return hooks, nil
}

// hookStateOf converts alert_status. Servers before 15.2 do not have it; their webhooks count as
// called.
func hookStateOf(alert string) provider.HookState {
	switch alert {
	case "temporarily_disabled":
		return provider.HookPaused
	case "disabled":
		return provider.HookDisabled
	}
	return provider.HookCalled
}

// hookEvent is an attempt in GitLab's log.
type hookEvent struct {
	ID      int64             `json:"id"`
	Header  map[string]string `json:"request_headers"`
	Payload json.RawMessage   `json:"request_data"`
	Status  string            `json:"response_status"` // a number, or "internal error" for no answer
	At      time.Time         `json:"created_at"`      // of newer servers
}

// Attempts implements provider.HookLog. If a page is too large to be read, it reads the attempts
// one by one. An attempt that is too large alone is left out, because its content is unknown.
func (l *Log) Attempts(
	ctx context.Context, hook int64, failed bool, page int,
) (attempts []provider.Attempt, more bool, err error) {
	attempts, more, err = l.attempts(ctx, hook, failed, page, PerPage)
	if !errors.Is(err, provider.ErrTooLarge) {
		return attempts, more, err
	}
	more = true
	for i := 1; i <= PerPage && more; i++ {
		one, after, err := l.attempts(ctx, hook, failed, (page-1)*PerPage+i, 1)
		if errors.Is(err, provider.ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		attempts, more = append(attempts, one...), after
	}
	return attempts, more, nil
}

func (l *Log) attempts(
	ctx context.Context, hook int64, failed bool, page, perPage int,
) ([]provider.Attempt, bool, error) {
	const what = "listing the webhook's events"
	wanted := url.Values{"per_page": {strconv.Itoa(perPage)}, "page": {strconv.Itoa(page)}}
	if failed {
		wanted.Set("status", serverFailure)
	}
	var events []hookEvent
	resp, err := l.call(http.MethodGet, l.hookPath(hook)+"/events", &events, gl.WithContext(ctx), api.Query(wanted))
	if provider.StatusCode(err) == http.StatusNotFound {
		return nil, false, fault.Ignoredf(reasonNoHookLog, "%s: this GitLab shows none; it does since 17.3", what)
	}
	if err != nil {
		return nil, false, provider.Failed(what, err)
	}
	if events == nil || len(events) > perPage { // the server could make us store any number
		return nil, false, api.NoAnswer(what)
	}
	attempts := make([]provider.Attempt, 0, len(events))
	for i := range events {
		if events[i].ID <= 0 {
			return nil, false, api.NoAnswer(what)
		}
		attempts = append(attempts, events[i].attempt())
	}
	return attempts, resp.NextPage > 0, nil
}

// attempt converts an event. It counts as one that starts nothing if it has no Idempotency-Key
// (servers before 17.4), because a resend would be taken for a new event. The same holds for a key
// that receivers refuse: the server decides how long it is, and undelivered webhooks are stored in
// memory.
func (e *hookEvent) attempt() provider.Attempt {
	header := http.Header{}
	for name, value := range e.Header {
		header.Set(name, value)
	}
	status, err := strconv.Atoi(e.Status)
	if err != nil {
		status = 0
	}
	a := provider.Attempt{ID: e.ID, At: e.At, Status: status}
	if a.GUID, err = payload.Key(header, delivery.KeyHeader); err != nil {
		return a
	}
	_, err = delivery.Webhook{}.Decode(header, bytes.Clone(e.Payload))
	a.Starts = err == nil
	return a
}

// Resend implements provider.HookLog.
func (l *Log) Resend(ctx context.Context, hook, attempt int64) (int, error) {
	const what = "asking GitLab to send an event again"
	var answer struct {
		Status int `json:"response_status"`
	}
	_, err := l.call(http.MethodPost, fmt.Sprintf("%s/events/%d/resend", l.hookPath(hook), attempt),
		&answer, gl.WithContext(ctx))
	switch code := provider.StatusCode(err); {
	case code == http.StatusNotFound:
		return 0, fault.Ignoredf(reasonDeliveryGone, "%s: GitLab no longer has it", what)
	case code == http.StatusTooManyRequests:
		return 0, fault.Throttledf(fault.ReasonRateLimited, provider.ResendsEvery, "%s: it was asked to too often", what)
	case code != http.StatusUnprocessableEntity:
		return answer.Status, provider.Failed(what, err)
	}
	switch provider.Message(err) {
	case saidMoved:
		return 0, fault.Ignoredf(reasonDeliveryGone, "%s: the webhook's URL has changed since", what)
	case saidDisabled:
		return 0, fault.Transientf(reasonHookPaused, "%s: it has paused or disabled the webhook", what)
	}
	return 0, nil // its message is about a call without an answer
}

// call makes a call that go-gitlab has no method for.
func (l *Log) call(method, path string, into any, options ...gl.RequestOptionFunc) (*gl.Response, error) {
	req, err := l.client.NewRequest(method, path, nil, options)
	if err != nil {
		return nil, err
	}
	return l.client.Do(req, into)
}
