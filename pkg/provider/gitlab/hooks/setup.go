// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
)

// scopeAPI is the only scope that may set a status.
const scopeAPI = "api"

// Role is a user's level in a project.
type Role int

// The roles that Plumbline tells apart.
const (
	Developer  = Role(gl.DeveloperPermissions)
	Maintainer = Role(gl.MaintainerPermissions)
)

// Verify returns the role of the token's user in the project. It is an error if Plumbline cannot
// work with the token: it is refused, it does not see the project, or it lacks the scope or role
// that setting a status needs.
func (l *Log) Verify(ctx context.Context) (Role, error) {
	role, err := l.role(ctx)
	if err != nil {
		return 0, err
	}
	var self struct{ Scopes []string }
	switch _, err := l.call(http.MethodGet, "personal_access_tokens/self", &self, gl.WithContext(ctx)); {
	case provider.StatusCode(err) == http.StatusNotFound, provider.StatusCode(err) == http.StatusBadRequest:
		// An OAuth token, or a GitLab before 15.5.
	case err != nil:
		return 0, provider.Failed("reading the token's scopes", err)
	case !slices.Contains(self.Scopes, scopeAPI):
		return 0, fault.Operatorf(fault.ReasonPermissionMissing,
			"the token has the scopes %q, and setting a status needs api: create a token with api and read_repository",
			strings.Join(self.Scopes, " "))
	}
	if role < Developer {
		return 0, fault.Operatorf(fault.ReasonPermissionMissing,
			"the token's user has less than the role Developer in the project, which setting a status needs: "+
				"create a token with the role Developer, or Maintainer")
	}
	return role, nil
}

// role reads the highest role of the token's user, by the project or a group.
func (l *Log) role(ctx context.Context) (Role, error) {
	type access struct {
		Level Role `json:"access_level"`
	}
	var project struct {
		Permissions struct {
			Project *access `json:"project_access"`
			Group   *access `json:"group_access"`
		}
	}
	_, err := l.call(http.MethodGet, l.path, &project, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return 0, fault.Operatorf(fault.ReasonPermissionMissing,
			"GitLab shows no such project to the token: check the URL, and that the token's user is a member of the project")
	}
	if err != nil {
		return 0, provider.Failed("reading the project", err)
	}
	var role Role
	for _, a := range []*access{project.Permissions.Project, project.Permissions.Group} {
		if a != nil {
			role = max(role, a.Level)
		}
	}
	return role, nil
}

// triggers are the events that docs/gitlab.md lists, and those that start nothing.
func triggers() map[string]bool {
	return map[string]bool{
		"push_events": true, "tag_push_events": true, "merge_requests_events": true, "note_events": true,
		"confidential_note_events": false, "issues_events": false, "confidential_issues_events": false,
		"job_events": false, "pipeline_events": false, "wiki_page_events": false,
	}
}

// Put adds the project's webhook with this URL, or corrects it: its triggers and its secret token.
// GitLab never shows a secret token, so it is always sent. created reports whether there was none.
// GitLab accepts two webhooks with one URL. So a second one that this call and another have added
// at the same time is deleted: the one with the lowest ID stays.
func (l *Log) Put(ctx context.Context, address, secret string) (created bool, err error) {
	known, err := l.oldest(ctx, address)
	if err != nil {
		return false, err
	}
	own, err := l.set(ctx, known, address, secret)
	if err != nil || known > 0 {
		return false, err
	}
	first, err := l.oldest(ctx, address)
	if err != nil {
		return false, err
	}
	if first == 0 || first >= own {
		return true, nil
	}
	if err := l.remove(ctx, own); err != nil {
		return false, err
	}
	_, err = l.set(ctx, first, address, secret)
	return false, err
}

// oldest returns the lowest ID of the project's webhooks with this URL, 0 if there is none.
func (l *Log) oldest(ctx context.Context, address string) (id int64, err error) {
	known, err := l.Hooks(ctx)
	for _, h := range known {
		if provider.SameAddress(h.URL, address) && (id == 0 || h.ID < id) {
			id = h.ID
		}
	}
	return id, err
}

// set creates a webhook, or changes the one with this ID. It returns its ID.
func (l *Log) set(ctx context.Context, id int64, address, secret string) (int64, error) {
	body := map[string]any{
		"url": address, "token": secret, "enable_ssl_verification": true, "push_events_branch_filter": "",
	}
	for trigger, on := range triggers() {
		body[trigger] = on
	}
	const what = "setting the project's webhook"
	method, path := http.MethodPost, l.path+"/hooks"
	if id > 0 {
		method, path = http.MethodPut, l.hookPath(id)
	}
	var hook struct {
		ID int64 `json:"id"`
	}
	req, err := l.client.NewRequest(method, path, body, []gl.RequestOptionFunc{gl.WithContext(ctx)})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	if _, err := l.client.Do(req, &hook); err != nil {
		return 0, provider.Failed(what, err)
	}
	if hook.ID <= 0 {
		return 0, api.NoAnswer(what)
	}
	return hook.ID, nil
}

// remove deletes a webhook. One that is gone is no error.
func (l *Log) remove(ctx context.Context, id int64) error {
	_, err := l.call(http.MethodDelete, l.hookPath(id), nil, gl.WithContext(ctx))
	if err != nil && provider.StatusCode(err) != http.StatusNotFound {
		return provider.Failed("deleting the second webhook with the same URL", err)
	}
	return nil
}

// hookPath returns the path of a webhook in GitLab's API.
func (l *Log) hookPath(id int64) string { return fmt.Sprintf("%s/hooks/%d", l.path, id) }
