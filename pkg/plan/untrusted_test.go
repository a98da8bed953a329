// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// S23: the runs of an approved commit are labelled. They get neither the definitions of its author,
// nor secrets, nor a token that may do more than read, nor a ServiceAccount from a definition.
func TestS23ApprovedCommitRunsConfined(t *testing.T) {
	t.Parallel()
	accounts := func(run *pipelinev1.PipelineRun) string {
		all := run.Spec.TaskRunTemplate.ServiceAccountName
		for _, spec := range run.Spec.TaskRunSpecs {
			all += "," + spec.ServiceAccountName
		}
		return all
	}
	secret := func(untrusted bool) *[]pacv1alpha1.Params {
		return &[]pacv1alpha1.Params{{Name: "key", SecretRef: &pacv1alpha1.Secret{Name: "s", Key: "k"}, Untrusted: untrusted}}
	}
	for name, c := range map[string]struct {
		approved    bool
		spec        pacv1alpha1.RepositorySpec
		app         int64
		from        string
		accounts    string
		refused     bool
		token       bool
		trust, uses string
	}{
		"as it is": {
			true, pacv1alpha1.RepositorySpec{}, 7, defaultSHA, ",", false, true, "untrusted", "",
		},
		"with a ServiceAccount for it": {true, pacv1alpha1.RepositorySpec{
			Settings: &pacv1alpha1.Settings{UntrustedServiceAccount: "guest"},
		}, 7, defaultSHA, "guest,", false, true, "untrusted", ""},
		"with its own definitions": {true, pacv1alpha1.RepositorySpec{
			Settings: &pacv1alpha1.Settings{PipelineRunProvenance: "source"},
		}, 7, sha, ",", false, true, "untrusted", ""},
		"with a secret": {
			true, pacv1alpha1.RepositorySpec{Params: secret(false)}, 7, defaultSHA, "", true, false, "", "{{ key }}",
		},
		"with a secret that is for untrusted users too": {
			true, pacv1alpha1.RepositorySpec{Params: secret(true)}, 7, defaultSHA, ",", false, true, "untrusted", "{{ key }}",
		},
		"where the token is the Repository's": {
			true, pacv1alpha1.RepositorySpec{}, 0, defaultSHA, ",", false, false, "untrusted", "",
		},
		"a writer's": {
			false, pacv1alpha1.RepositorySpec{Params: secret(false)}, 0, sha, "deployer,deployer", false, true, "", "{{ key }}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := edited(pipeline("a", `on-cel-expression: 'event_type != ""'`), "spec:\n  pipelineSpec",
				"spec:\n  taskRunTemplate: {serviceAccountName: deployer}\n  taskRunSpecs: [{pipelineTaskName: build, serviceAccountName: deployer}]\n  pipelineSpec", `\"true\"`, `"true"`)
			if c.uses != "" {
				file = edited(file, `script: "true"`, `script: "`+c.uses+`"`)
			}
			w := &env{files: []git.File{file}, writers: "member", said: "/ok-to-test", moved: sha,
				secrets: map[template.SecretRef]string{{Name: "s", Key: "k"}: "value"}}
			in := saying("member")
			if !c.approved {
				w.writers += " author"
			}
			in.Repository.Spec, in.Event.Spec.InstallationID = c.spec, c.app
			sources := w.sources()
			sources.Records = func(context.Context) ([]history.Record, error) {
				return []history.Record{onRecord("pull-1", sha, 1, map[bool]v1alpha1.Disposition{
					true: v1alpha1.DispositionPending, false: v1alpha1.DispositionRuns,
				}[c.approved])}, nil
			}
			made, err := plan.Make(t.Context(), in, sources)
			if err != nil || len(made.Runs) != 1 || made.DefinitionSHA != c.from || (made.Approval != nil) != c.approved {
				t.Fatalf("%v, %+v", err, made)
			}
			run := made.Runs[0]
			if c.refused {
				if run.Refused == nil || !strings.Contains(run.Refused.Message, "untrusted: true") || w.count("secret") != 0 {
					t.Errorf("%+v, asked %v", run.Refused, w.asked)
				}
				return
			}
			pr := decoded(t, run)
			if got := accounts(pr); got != c.accounts || pr.Labels[plumbline.TrustLabel] != c.trust ||
				(run.Secret != "") != c.token {
				t.Errorf("ServiceAccounts %q, trust %q, git-auth secret %q", got, pr.Labels[plumbline.TrustLabel], run.Secret)
			}
		})
	}
}
