// SPDX-License-Identifier: Apache-2.0

package language

import (
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// Occasion is one payload and what can be learnt of its event.
type Occasion struct {
	// Event is GitHub's name of the event, Payload a file of pkg/provider/github/testdata.
	Event, Payload string
	// Changed are the changed files, if anybody asks.
	Changed match.Changes
	// Merged is the merged pull request of the commit.
	Merged int64
	// Params are the Repository's, and Secrets the values by "name/key".
	Params  []template.Param
	Secrets map[string]string
}

// Selection is one payload and the pipelines that meet it.
type Selection struct {
	Occasion
	// Pipelines are sentences and annotations without their common prefix.
	Pipelines []struct {
		Name        string
		Annotations map[string]string
	}
}

// Templates is one payload and texts that meet it.
type Templates struct {
	Occasion
	// Texts are texts with placeholders.
	Texts []string
}

// Everywhere are the texts that every payload meets.
func Everywhere() []string {
	var texts []string
	for _, name := range []string{
		"revision", "repo_url", "repo_owner", "repo_name", "target_branch", "source_branch", "git_tag", "source_url",
		"sender", "target_namespace",
		"event", "event_type", "trigger_comment", "pull_request_labels", "pull_request_number", "git_auth_secret",
		"body.repository.full_name", "body.sender.id", "body.repository.private", "body.repository.topics",
		"body.repository.license", "body.none",
		"headers['X-GitHub-Event']", "headers['x-github-event']", "headers['X-Hub-Signature-256']",
		"files.all", "files.added", "files.deleted", "files.modified", "files.renamed",
		"cel: pac.event + '/' + pac.event_type", "cel: has(body.pull_request) ? 'pull' : 'push'",
		"cel: body.pull_request.head.ref", `cel: "**.go".pathChanged()`,
		"cel: files.all.filter(f, f.endsWith('.go'))", "cel: body.repository.full_name.split('/')",
		"cel: target_url + event_title", "cel: unknown",
	} {
		texts = append(texts, "{{ "+name+" }}")
	}
	return texts
}
