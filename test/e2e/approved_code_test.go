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

// withServiceAccount names a ServiceAccount in a definition.
func withServiceAccount(definition string) string {
	return strings.Replace(definition, "spec:\n  params:",
		"spec:\n  taskRunTemplate:\n    serviceAccountName: powerful\n  params:", 1)
}

// withKeyParam uses the param "key" in a definition.
func withKeyParam(definition string) string {
	return strings.Replace(definition, "  params:\n", "  params:\n    - name: key\n      value: \"{{ key }}\"\n", 1)
}

// S23: the run of an untrusted user's approved commit has the definitions of the default branch,
// Tekton's default ServiceAccount, no secret param, a read-only token or none, and a label that
// says that the code is untrusted. The Repository's other params are set.
func TestApprovedCodeHasLimitedRights(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("member", "write")
		env.createTeamSecret("keys", "key", "not for strangers")
		env.setParams(`[{"name":"key","secret_ref":{"name":"keys","key":"key"}}]`)
		env.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml":        withServiceAccount(pipeline("pr", "pull_request", held)),
			".tekton/secretive.yaml": withKeyParam(pipeline("secretive", "pull_request")),
		}})
		env.git.fork("stranger")
		sha := env.git.commitFork("stranger",
			forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("mine", "pull_request")}, Author: "stranger"})
		number := env.git.open("stranger", "feature", "stranger")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.awaitCheck(sha, application, "queued", soon)
		approval := env.comment(number, "member", "/ok-to-test")
		env.deliver(approval, http.StatusAccepted)
		env.awaitCheck(sha, checkName("pr"), "in_progress", soon)
		env.awaitCheck(sha, checkName("secretive"), "failure", soon) // no check is created during the count
		env.requireReadOnlyToken(ptr(env.recordOf(approval)), sha)
		env.releaseRuns(ptr(env.recordOf(approval)))
		env.awaitCheck(sha, checkName("pr"), "success", soon)
		if refused := env.awaitCheck(sha, checkName("secretive"), "failure",
			soon); !strings.Contains(refused.Text+refused.Summary, "key") {
			t.Errorf("the check of what uses a secret says %q %q", refused.Summary, refused.Text)
		}
		run := env.runs()[0]
		env.requireRunCount(1)
		equal(t, "the trust label of the untrusted run", run.Labels[plumbline.TrustLabel], plumbline.TrustUntrusted)
		if account := run.Spec.TaskRunTemplate.ServiceAccountName; account == "powerful" {
			t.Errorf("the untrusted run has the ServiceAccount %q", account)
		}

		env.must(errOf(env.Kube.CoreV1().ServiceAccounts(env.ci).Create(env.ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "quarantine"}}, metav1.CreateOptions{})))
		env.setParams(`[{"name":"key","secret_ref":{"name":"keys","key":"key"},"untrusted":true}]`)
		env.changeSettings(`{"untrusted_service_account":"quarantine","pipelinerun_provenance":"source"}`)
		env.deliver(env.comment(number, "member", "/test mine secretive"), http.StatusAccepted)
		env.awaitCheck(sha, checkName("mine"), "success", soon)
		env.awaitCheck(sha, checkName("secretive"), "success", soon)
		env.awaitAllSettled(soon)
		env.requireOnlyStarted("mine", "pr", "secretive")
		accounts := map[string]int{}
		for _, run := range env.runs() {
			accounts[run.Spec.TaskRunTemplate.ServiceAccountName]++
			if run.Labels[plumbline.TrustLabel] != plumbline.TrustUntrusted {
				t.Errorf("%s of the untrusted code has the labels %v", run.Name, run.Labels)
			}
		}
		if accounts["quarantine"] != 2 {
			t.Errorf("the ServiceAccounts of the runs are %v, want two of quarantine", accounts)
		}
	})
}

// requireReadOnlyToken requires that the token in the pods of the run "pr" can read the repository
// and cannot write a check. On GitLab the token is the Repository's own, so the pods have none.
func (env *environment) requireReadOnlyToken(event *v1alpha1.GitEvent, sha string) {
	env.t.Helper()
	name := runName(event, "pr")
	named := env.getRun(name).Annotations[pipelinesascode.GitAuthSecret]
	if env.git.kind() == gitLab {
		if n := env.countSecrets(); named != "" || n != 1 { // the Secret of the Repository's param
			env.t.Errorf("the run of untrusted code has the secret %q, and there are %d, want one that is no run's", named, n)
		}
		return
	}
	secret, err := env.Kube.CoreV1().Secrets(env.ci).Get(env.ctx, named, metav1.GetOptions{})
	env.must(err)
	token, checks := string(secret.Data["git-provider-token"]), len(env.git.checks(sha))
	if got := env.callWithRunToken(http.MethodGet, "repos/"+repoName, token, ""); got != http.StatusOK {
		env.t.Errorf("reading the repository with the run's token: %d, want 200", got)
	}
	// The external id is that of a run that will succeed, so this refused write breaks no
	// invariant.
	verdict := fmt.Sprintf(`{"name":%q,"head_sha":%q,"external_id":%q,"status":"completed","conclusion":"success"}`,
		checkName("pr"), sha, name)
	equal(env.t, "a check by the run's token",
		env.callWithRunToken(http.MethodPost, "repos/"+repoName+"/check-runs", token, verdict), http.StatusForbidden)
	equal(env.t, "the number of checks afterwards", len(env.git.checks(sha)), checks)
}

// setParams sets the params of the Repository and waits until the controller has seen them.
func (env *environment) setParams(params string) {
	env.t.Helper()
	env.patchSpec(`{"params":` + params + `}`)
}
