// SPDX-License-Identifier: Apache-2.0

// Package bootstrap registers a GitHub App for an installation, with GitHub's manifest flow: a
// local page sends the App's settings to GitHub, the user confirms them there, and GitHub returns a
// code that is exchanged for the App's credentials.
package bootstrap

// Manifest is a GitHub App as GitHub's page takes it.
type Manifest struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"`
	Hook        Hook              `json:"hook_attributes"`
	Redirect    string            `json:"redirect_url"`
	Public      bool              `json:"public"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
}

// Hook is the App's webhook. GitHub chooses its secret.
type Hook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// membersPermission is needed only for teams and members, see docs/github.md.
const membersPermission = "members"

// Permissions returns what the App needs. docs/github.md says what each is used for.
func Permissions(members bool) map[string]string {
	all := map[string]string{
		"checks": "write", "contents": "read", "issues": "read", "merge_queues": "read", "metadata": "read",
		"pull_requests": "write",
	}
	if members {
		all[membersPermission] = "read"
	}
	return all
}

// Events returns the events that the App needs.
func Events() []string {
	return []string{"commit_comment", "issue_comment", "merge_group", "pull_request", "push"}
}
