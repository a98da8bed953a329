// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// replaceRepository deletes the environment's repository and lets another user create one under
// its name, which the App or the token also covers. It returns the id of the new one.
func (env *environment) replaceRepository() int64 {
	env.t.Helper()
	g, ok := env.git.(*onGitLab)
	if !ok {
		hub := env.git.(*onGitHub)
		env.forge.DeleteRepo(repoName)
		env.repo = env.forge.CreateRepo("acme", "app", forge.RepoOptions{})
		env.forge.SetInstalledRepos(hub.installation, repoName)
		return env.repo.ID
	}
	g.DeleteProject(projectName)
	g.repo = g.CreateProject(projectName, gitlab.ProjectOptions{Unprotected: true})
	g.token = g.CreateToken(gitlab.NewToken{Project: projectName})
	g.hook = g.AddHook(projectName, noURL, hookSecret)
	_, err := env.Kube.CoreV1().Secrets(env.ci).Patch(env.ctx, gitlabSecret, types.StrategicMergePatchType,
		[]byte(`{"stringData":{"provider.token":"`+g.token.Value+`"}}`), metav1.PatchOptions{})
	env.must(err)
	return g.repo.ID
}

// redeliverSettled sends a delivery again and waits until the event of a redelivery is settled.
func (env *environment) redeliverSettled(d delivery, times int) {
	env.t.Helper()
	if status, body, err := env.git.redeliver(env.ctx, d.ID()); err != nil || status != http.StatusAccepted {
		env.t.Fatalf("the redelivery was answered %d %s, %v", status, body, err)
	}
	env.eventually(soon, "the redelivery has an event of its own that is settled", func() error {
		for _, event := range env.events() {
			if event.Spec.DeliveryKey == d.ID() && strings.HasSuffix(event.Name, fmt.Sprint("-r", times)) && event.Settled() {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(env.events()))
	})
}

// S14: the repository behind a URL is another one, because another user has taken over its name.
// Its pushes start nothing and get no check, however often they are sent, until a user who may
// edit the Repository confirms it. Then a redelivery runs.
func TestTakenOverRepositoryStartsNothing(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		definition := pipeline("owned", "push")
		sha, first := env.push(map[string]string{".tekton/push.yaml": definition})
		env.deliver(first, http.StatusAccepted)
		env.awaitCheck(sha, checkName("owned"), "success", soon)
		env.awaitAllSettled(soon)
		bound := env.claim(env.git.page()).Status.Bound
		if bound == nil || bound.OwnerID == 0 || bound.RepositoryUID == "" {
			t.Fatalf("the URL is bound to %+v", bound)
		}

		id := env.replaceRepository()
		theirs, pushed := env.push(map[string]string{".tekton/push.yaml": definition, "README": "another commit"})
		env.deliver(pushed, http.StatusAccepted)
		env.requireDisposition(pushed, v1alpha1.DispositionIgnored, v1alpha1.ReasonAnotherRepository)
		env.redeliverSettled(pushed, 1)
		status := env.claim(env.git.page()).Status
		if status.Refused == nil || status.Refused.ID != id || status.Bound.ID != bound.ID {
			t.Fatalf("the claim says %+v, want %d refused and %d bound", status, id, bound.ID)
		}
		if runs, checks, told := env.runs(), env.git.checks(theirs), env.checkWrites(theirs, ""); len(runs) != 1 ||
			len(checks) != 0 || len(told) != 0 {
			t.Fatalf("%d runs, want the first repository's; checks %+v, Kubernetes Events %+v, want none", len(runs), checks,
				told)
		}

		_, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Patch(env.ctx, "app", types.MergePatchType,
			[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, plumbline.RepositoryIDAnnotation, status.Refused)),
			metav1.PatchOptions{})
		env.must(err)
		env.redeliverSettled(pushed, 2)
		env.awaitCheck(theirs, checkName("owned"), "success", soon)
		if now := env.claim(env.git.page()).Status; now.Bound.ID != id || now.Refused != nil {
			t.Errorf("the claim says %+v, want %d bound", now, id)
		}
	})
}

// S15: where a proof is required, a Repository is not served if its namespace is neither listed
// nor named by the default branch. The push that adds the file is served.
func TestURLIsServedWithProof(t *testing.T) {
	forEachService(t, setup{
		receivers: 1, controllers: 1, config: [][3]string{{"plumbline", "url-owners", "{}"}},
	}, func(t *testing.T, env *environment) {
		sha, pushed := env.push(map[string]string{
			".tekton/push.yaml": pipeline("proven", "push"), ".tekton/.plumbline-namespace": "somebody-else\n",
		})
		env.deliver(pushed, http.StatusAccepted)
		env.requireDisposition(pushed, v1alpha1.DispositionIgnored, v1alpha1.ReasonNotProven)
		if runs, told := env.runs(), env.checkWrites(sha, ""); len(runs) != 0 || len(told) != 0 {
			t.Errorf("%d runs, Kubernetes Events %+v: want none", len(runs), told)
		}
		sha, pushed = env.push(map[string]string{".tekton/.plumbline-namespace": env.ci + "\n"})
		env.deliver(pushed, http.StatusAccepted)
		env.awaitCheck(sha, checkName("proven"), "success", soon)
		if !env.claim(env.git.page()).Status.Proven {
			t.Error("the claim does not say that the URL is proven")
		}
		env.awaitAllSettled(soon)
	})
}
