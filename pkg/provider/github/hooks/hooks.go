// SPDX-License-Identifier: Apache-2.0

// Package hooks sets up the webhook of a GitHub repository that no App serves, and verifies its
// token.
package hooks

import (
	"context"
	"fmt"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// Hooks are the webhooks of one repository, as a token sees them.
type Hooks struct {
	client *gh.Client
	path   string
}

// Of returns the webhooks of a repository.
func Of(client *gh.Client, owner, name string) *Hooks {
	return &Hooks{client, fmt.Sprintf("repos/%s/%s", owner, name)}
}

// Verify returns an error if Plumbline cannot work with the token: it is refused, it does not see
// the repository, or its user may not set a status.
func (h *Hooks) Verify(ctx context.Context) error {
	var repository gh.Repository
	switch err := h.call(ctx, http.MethodGet, h.path, nil, &repository); {
	case provider.StatusCode(err) == http.StatusNotFound:
		return fault.Operatorf(fault.ReasonPermissionMissing,
			"GitHub shows no such repository to the token: check the URL, and the repositories that the token covers")
	case err != nil:
		return limits.Failed("reading the repository", err)
	case !repository.GetPermissions()["push"]:
		return fault.Operatorf(fault.ReasonPermissionMissing,
			"the token's user has no write access to the repository, which setting a status needs")
	}
	return nil
}

// Put adds the repository's webhook with this URL, or corrects it: its events, its content type and
// its secret. GitHub never shows a secret, so it is always sent. created reports whether there was
// none. GitHub accepts one webhook with a URL.
func (h *Hooks) Put(ctx context.Context, address, secret string) (created bool, err error) {
	known, err := h.find(ctx, address)
	if err != nil {
		return false, err
	}
	events := []string{"push", "pull_request", "issue_comment", "commit_comment"}
	body := map[string]any{"active": true, "config": map[string]string{
		"url": address, "content_type": "json", "secret": secret, "insecure_ssl": "0",
	}}
	method, path := http.MethodPost, h.path+"/hooks"
	if known == 0 {
		body["name"], body["events"] = "web", events
	} else { // a user may have added merge_group
		method, path = http.MethodPatch, fmt.Sprintf("%s/%d", path, known)
		body["add_events"] = events
	}
	if err := h.call(ctx, method, path, body, nil); err != nil {
		return false, limits.Failed("setting the repository's webhook", err)
	}
	return known == 0, nil
}

// find returns the ID of the repository's webhook with this URL, 0 if there is none.
func (h *Hooks) find(ctx context.Context, address string) (int64, error) {
	const perPage = 100 // GitHub allows 20 webhooks for an event
	var all []struct {
		ID     int64
		Config struct{ URL string }
	}
	if err := h.call(ctx, http.MethodGet, fmt.Sprintf("%s/hooks?per_page=%d", h.path, perPage), nil, &all); err != nil {
		return 0, limits.Failed("listing the repository's webhooks", err)
	}
	for _, hook := range all {
		if provider.SameAddress(hook.Config.URL, address) {
			return hook.ID, nil
		}
	}
	return 0, nil
}

func (h *Hooks) call(ctx context.Context, method, path string, body, into any) error {
	req, err := h.client.NewRequest(method, path, body)
	if err != nil {
		return err
	}
	_, err = h.client.Do(ctx, req, into)
	return err
}
