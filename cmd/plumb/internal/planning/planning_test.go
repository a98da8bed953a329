// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"context"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/planning"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/settings"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/show"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

const repository = `apiVersion: pipelinesascode.tekton.dev/v1alpha1
kind: Repository
metadata: {name: app, namespace: team}
spec: {url: https://github.com/acme/app, params: [{name: token, secret_ref: {name: vault, key: token}}]}
`

// The scripts hold the secret as it is, and what an expression makes of it.
const pipelines = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: a
  annotations: {pipelinesascode.tekton.dev/on-event: push, pipelinesascode.tekton.dev/on-target-branch: main}
spec:
  params: [{name: own, value: "{{ token }}"}, {name: made, value: "{{ cel: 'x' + token }}"}]
---
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: b
  annotations: {pipelinesascode.tekton.dev/on-cel-expression: token.startsWith("hunt")}
---
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: c
  annotations: {pipelinesascode.tekton.dev/on-cel-expression: token == "other"}
`

// With a cluster, the values of the secrets decide. Without one they are unknown. Neither prints
// them.
func TestSecretsAreNeverShown(t *testing.T) {
	for name, test := range map[string]struct {
		secret func(context.Context, template.SecretRef) (string, error)
		want   []string // what the table and the YAML hold
	}{
		"from a cluster": {func(context.Context, template.SecretRef) (string, error) { return "hunter2", nil },
			[]string{"a         yes", "b         yes", "c         no", "value: <secret vault/token>\n", "value: <secret>\n"}},
		"without one": {nil, []string{"a         yes", "b         unknown", "c         unknown",
			"value: <secret vault/token>\n", "value: x<secret vault/token>\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := report(t, test.secret)
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("got\n%s\nwant %q", out, want)
				}
			}
			if strings.Contains(out, "hunter2") || strings.Contains(out, "plumbline-secret-") {
				t.Errorf("a secret or a marker is shown:\n%s", out)
			}
		})
	}
}

func report(t *testing.T, secret func(context.Context, template.SecretRef) (string, error)) string {
	t.Helper()
	repo := scratch.New(t, map[string]string{".tekton/a.yaml": pipelines})
	tree, err := worktree.Open(t.Context(), repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := settings.FromFiles([]byte(repository), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	files.Secret = secret
	const url = "https://github.com/acme/app"
	sent, err := delivery.Described{Kind: delivery.Pushed, Service: "github", URL: url, HeadURL: url, Base: "main",
		DefaultBranch: "main",
		SHA:           tree.Head.SHA, Message: "x", Sender: "dev", Key: "1"}.Delivery()
	if err != nil {
		t.Fatal(err)
	}
	event, err := sent.Read()
	if err != nil {
		t.Fatal(err)
	}
	event.Spec.Repository = v1alpha1.RepositoryReference{Namespace: "team", Name: "app", URL: url}
	result, err := planning.Make(t.Context(), planning.Request{
		Tree: tree, Delivery: sent, Spec: event.Spec, Settings: files, Namespace: "plumbline", Version: "v1",
	})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := show.Of(result)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, write := range []error{
		shown.Table(&out, show.Options{}), shown.YAML(&out), shown.JSON(&out), shown.Errors(&out, terminal.Terminal{}),
	} {
		if write != nil {
			t.Fatal(write)
		}
	}
	return out.String()
}
