// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// asPowerful names a ServiceAccount in a definition.
func asPowerful(definition string) string {
	return strings.Replace(definition, "spec:\n  params:", "spec:\n  taskRunTemplate:\n    serviceAccountName: powerful\n  params:", 1)
}

// keyed uses the param "key".
func keyed(definition string) string {
	return strings.Replace(definition, "  params:\n", "  params:\n    - name: key\n      value: \"{{ key }}\"\n", 1)
}

// S23: the run of a stranger's approved commit has the definitions of the default branch, Tekton's
// default ServiceAccount, no secret param, a token that reads or none, and a label that says whose
// code it is. What the Repository gives it, it has.
func TestS23WhatApprovedCodeMayDo(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("member", "write")
		w.keeps("keys", "key", "not for strangers")
		w.parameter(`[{"name":"key","secret_ref":{"name":"keys","key":"key"}}]`)
		w.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml": asPowerful(pipeline("pr", "pull_request", held)), ".tekton/secretive.yaml": keyed(pipeline("secretive", "pull_request")),
		}})
		w.git.fork("stranger")
		sha := w.git.commitFork("stranger", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("mine", "pull_request")}, Author: "stranger"})
		number := w.git.open("stranger", "feature", "stranger")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.checkReaches(sha, application, "queued", soon)
		approval := w.commands(number, "member", "/ok-to-test")
		w.deliver(approval, http.StatusAccepted)
		w.checkReaches(sha, checkName("pr"), "in_progress", soon)
		w.checkReaches(sha, checkName("secretive"), "failure", soon) // no check comes while they are counted
		w.readsOrNothing(ptr(w.recordOf(approval)), sha)
		w.release(ptr(w.recordOf(approval)))
		w.checkReaches(sha, checkName("pr"), "success", soon)
		if refused := w.checkReaches(sha, checkName("secretive"), "failure", soon); !strings.Contains(refused.Text+refused.Summary, "key") {
			t.Errorf("the check of what uses a secret says %q %q", refused.Summary, refused.Text)
		}
		run := w.runs()[0]
		if account := run.Spec.TaskRunTemplate.ServiceAccountName; len(w.runs()) != 1 || account == "powerful" || run.Labels[plumbline.TrustLabel] != plumbline.TrustUntrusted {
			t.Errorf("%d runs, that of the stranger's code has the ServiceAccount %q and the labels %v", len(w.runs()), account, run.Labels)
		}

		_, err := w.Kube.CoreV1().ServiceAccounts(w.ci).Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "quarantine"}}, metav1.CreateOptions{})
		w.must(err)
		w.parameter(`[{"name":"key","secret_ref":{"name":"keys","key":"key"},"untrusted":true}]`)
		w.set(`{"untrusted_service_account":"quarantine","pipelinerun_provenance":"source"}`)
		w.deliver(w.commands(number, "member", "/test mine secretive"), http.StatusAccepted)
		w.checkReaches(sha, checkName("mine"), "success", soon)
		w.checkReaches(sha, checkName("secretive"), "success", soon)
		w.settled(soon)
		w.started("mine", "pr", "secretive")
		accounts := map[string]int{}
		for _, run := range w.runs() {
			accounts[run.Spec.TaskRunTemplate.ServiceAccountName]++
			if run.Labels[plumbline.TrustLabel] != plumbline.TrustUntrusted {
				t.Errorf("%s of the stranger's code has the labels %v", run.Name, run.Labels)
			}
		}
		if accounts["quarantine"] != 2 {
			t.Errorf("the ServiceAccounts of the runs are %v, want two of quarantine", accounts)
		}
	})
}

// readsOrNothing requires that what the pods of the run "pr" find reads the repository and cannot
// say that the commit is good. On GitLab, where the token is the Repository's own, they find
// nothing.
func (w *world) readsOrNothing(event *v1alpha1.GitEvent, sha string) {
	w.t.Helper()
	name := runOf(event, "pr")
	named := w.run(name).Annotations[pipelinesascode.GitAuthSecret]
	if w.git.kind() == gitLab {
		if n := w.secrets(); named != "" || n != 1 { // that of the Repository's param
			w.t.Errorf("the run of a stranger's code has the secret %q, and there are %d, want one that is no run's", named, n)
		}
		return
	}
	secret, err := w.Kube.CoreV1().Secrets(w.ci).Get(w.ctx, named, metav1.GetOptions{})
	w.must(err)
	token, checks := string(secret.Data["git-provider-token"]), len(w.git.checks(sha))
	if got := w.asRun(http.MethodGet, "repos/"+repoName, token, ""); got != http.StatusOK {
		w.t.Errorf("reading the repository with the run's token: %d, want 200", got)
	}
	// The external id is the run's, which will succeed: what is refused here breaks no invariant
	// about what was written.
	verdict := fmt.Sprintf(`{"name":%q,"head_sha":%q,"external_id":%q,"status":"completed","conclusion":"success"}`, checkName("pr"), sha, name)
	if got := w.asRun(http.MethodPost, "repos/"+repoName+"/check-runs", token, verdict); got != http.StatusForbidden || len(w.git.checks(sha)) != checks {
		w.t.Errorf("a successful check by the run's token: %d and %d checks more, want 403 and none", got, len(w.git.checks(sha))-checks)
	}
}

// parameter sets the params of the Repository, and waits until they are seen.
func (w *world) parameter(params string) {
	w.t.Helper()
	w.specify(`{"params":` + params + `}`)
}
