// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/template"
)

// templates is one payload and texts that meet it.
type templates struct {
	occasion
	// Texts are texts with placeholders.
	Texts []string
}

// The golden file holds, for each text, what was looked up for it and what becomes of it.
func TestTemplates(t *testing.T) {
	corpus(t, "templates", func(t *testing.T, data []byte) string {
		var c templates
		if err := yaml.UnmarshalStrict(data, &c); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, text := range slices.Concat(everywhere(), c.Texts) {
			fmt.Fprintf(&b, "%s\n    %s\n", text, replaced(c.read(t), text))
		}
		return b.String()
	})
}

// everywhere are the texts that every payload meets.
func everywhere() []string {
	var texts []string
	for _, name := range []string{
		"revision", "repo_url", "repo_owner", "repo_name", "target_branch", "source_branch", "git_tag", "source_url", "sender", "target_namespace",
		"event", "event_type", "trigger_comment", "pull_request_labels", "pull_request_number", "git_auth_secret",
		"body.repository.full_name", "body.sender.id", "body.repository.private", "body.repository.topics", "body.repository.license", "body.none",
		"headers['X-GitHub-Event']", "headers['x-github-event']", "headers['X-Hub-Signature-256']",
		"files.all", "files.added", "files.deleted", "files.modified", "files.renamed",
		"cel: pac.event + '/' + pac.event_type", "cel: has(body.pull_request) ? 'pull' : 'push'", "cel: body.pull_request.head.ref", `cel: "**.go".pathChanged()`,
		"cel: files.all.filter(f, f.endsWith('.go'))", "cel: body.repository.full_name.split('/')", "cel: target_url + event_title", "cel: nobody",
	} {
		texts = append(texts, "{{ "+name+" }}")
	}
	return texts
}

func replaced(k *known, text string) string {
	for range maxRounds {
		left := 1 << 20
		got, err := k.scope.Place(text, &left)
		needs, unknown := template.NeedsOf(err)
		switch {
		case unknown:
			k.learn(needs)
		case fault.Is(err, fault.Invalid):
			return k.asked + "invalid: " + err.Error()
		case err != nil:
			return k.asked + "NOT THE AUTHOR'S: " + err.Error()
		default:
			return fmt.Sprintf("%s%q", k.asked, got)
		}
	}
	return k.asked + "still not known"
}
