// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

func TestVariables(t *testing.T) {
	project := v1alpha1.Project{Owner: "Acme", Name: "App", URL: "https://github.com/Acme/App"}
	tests := map[string]struct {
		event v1alpha1.GitEventSpec
		want  map[string]string
	}{
		"a push to a branch": {
			v1alpha1.GitEventSpec{
				Trigger: v1alpha1.TriggerPush, EventType: "push", Project: project, Sender: "Jane",
				BaseRef: "refs/heads/main", HeadRef: "refs/heads/main", HeadURL: project.URL,
			},
			map[string]string{
				"revision": "abc", "repo_url": "https://github.com/Acme/App", "repo_owner": "acme", "repo_name": "app",
				"target_branch": "main", "source_branch": "main", "git_tag": "", "source_url": "https://github.com/Acme/App",
				"sender": "jane", "target_namespace": "ci", "event": "push", "event_type": "push", "trigger_comment": "",
				"pull_request_labels": "",
			},
		},
		"a push of a tag keeps the prefix in the branches": {
			v1alpha1.GitEventSpec{
				Trigger: v1alpha1.TriggerPush, EventType: "push", Project: project, Sender: "jane",
				BaseRef: "refs/tags/v1.0", HeadRef: "refs/tags/v1.0", HeadURL: project.URL,
			},
			map[string]string{
				"revision": "abc", "repo_url": "https://github.com/Acme/App", "repo_owner": "acme", "repo_name": "app",
				"target_branch": "refs/tags/v1.0", "source_branch": "refs/tags/v1.0", "git_tag": "v1.0",
				"source_url": "https://github.com/Acme/App",
				"sender":     "jane", "target_namespace": "ci", "event": "push", "event_type": "push", "trigger_comment": "",
				"pull_request_labels": "",
			},
		},
		"a pull request from a fork, of a repository with a clone URL": {
			v1alpha1.GitEventSpec{
				Trigger: v1alpha1.TriggerPullRequest, EventType: "pull_request", Sender: "joe",
				Project: v1alpha1.Project{
					Owner: "acme", Name: "app", URL: "https://h/acme/app", CloneURL: "https://h/scm/acme/app.git",
				},
				BaseRef: "main", HeadRef: "topic", HeadURL: "https://h/joe/app",
				PullRequest: &v1alpha1.PullRequest{Number: 7, Labels: []string{"bug", "urgent"}},
			},
			map[string]string{
				"revision": "abc", "repo_url": "https://h/scm/acme/app.git", "repo_owner": "acme", "repo_name": "app",
				"target_branch": "main", "source_branch": "topic", "git_tag": "", "source_url": "https://h/joe/app",
				"sender": "joe", "target_namespace": "ci", "event": "pull_request", "event_type": "pull_request",
				"trigger_comment":     "",
				"pull_request_labels": `bug\nurgent`, "pull_request_number": "7",
			},
		},
		"a comment is one line": {
			v1alpha1.GitEventSpec{
				Trigger: v1alpha1.TriggerPullRequest, EventType: "on-comment", Sender: "joe", Project: project,
				BaseRef: "main", HeadRef: "topic", HeadURL: project.URL,
				PullRequest: &v1alpha1.PullRequest{Number: 7}, Comment: &v1alpha1.Comment{Body: " one\r\ntwo\n{{ sender }}\n"},
			},
			map[string]string{
				"revision": "abc", "repo_url": "https://github.com/Acme/App", "repo_owner": "acme", "repo_name": "app",
				"target_branch": "main", "source_branch": "topic", "git_tag": "", "source_url": "https://github.com/Acme/App",
				"sender": "joe", "target_namespace": "ci", "event": "pull_request", "event_type": "on-comment",
				"trigger_comment":     ` one\ntwo\n{{ sender }}\n`,
				"pull_request_labels": "", "pull_request_number": "7",
			},
		},
		"a command on a commit is about a push": {
			v1alpha1.GitEventSpec{
				Trigger: v1alpha1.TriggerPush, EventType: "test-all-comment", Sender: "joe", Project: project,
				BaseRef: "refs/heads/main", HeadRef: "refs/heads/main", HeadURL: project.URL,
				Comment: &v1alpha1.Comment{Body: "/test"},
			},
			map[string]string{
				"revision": "abc", "repo_url": "https://github.com/Acme/App", "repo_owner": "acme", "repo_name": "app",
				"target_branch": "main", "source_branch": "main", "git_tag": "", "source_url": "https://github.com/Acme/App",
				"sender": "joe", "target_namespace": "ci", "event": "push", "event_type": "push", "trigger_comment": "/test",
				"pull_request_labels": "",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Variables(&tt.event, git.Head{SHA: "abc"}, "ci")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
