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

// replaced deletes the world's repository and has somebody make another one under its name, which
// the App or the token covers as well. It returns what the service calls that one.
func (w *world) replaced() int64 {
	w.t.Helper()
	g, ok := w.git.(*onGitLab)
	if !ok {
		hub := w.git.(*onGitHub)
		w.forge.DeleteRepo(repoName)
		w.repo = w.forge.CreateRepo("acme", "app", forge.RepoOptions{})
		w.forge.SetInstalledRepos(hub.installation, repoName)
		return w.repo.ID
	}
	g.DeleteProject(projectName)
	g.repo = g.CreateProject(projectName, gitlab.ProjectOptions{Unprotected: true})
	g.token = g.CreateToken(gitlab.NewToken{Project: projectName})
	g.hook = g.AddHook(projectName, noURL, hookSecret)
	_, err := w.Kube.CoreV1().Secrets(w.ci).Patch(w.ctx, gitlabSecret, types.StrategicMergePatchType,
		[]byte(`{"stringData":{"provider.token":"`+g.token.Value+`"}}`), metav1.PatchOptions{})
	w.must(err)
	return g.repo.ID
}

// sentAgain sends a delivery again and waits until the event that a redelivery became is settled.
func (w *world) sentAgain(d delivery, times int) {
	w.t.Helper()
	if status, body, err := w.git.redeliver(w.ctx, d.ID()); err != nil || status != http.StatusAccepted {
		w.t.Fatalf("the redelivery was answered %d %s, %v", status, body, err)
	}
	w.eventually(soon, "the redelivery has an event of its own that is settled", func() error {
		for _, event := range w.events() {
			if event.Spec.DeliveryKey == d.ID() && strings.HasSuffix(event.Name, fmt.Sprint("-r", times)) && event.Settled() {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(w.events()))
	})
}

// S14: the repository behind a URL is another one, because somebody has taken over its name. Its
// pushes start nothing and it is told nothing, however often they are sent, until somebody who may
// edit the Repository confirms it; then a redelivery runs.
func TestS14ARepositoryUnderATakenOverNameStartsNothing(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		definition := pipeline("owned", "push")
		sha, first := w.push(map[string]string{".tekton/push.yaml": definition})
		w.deliver(first, http.StatusAccepted)
		w.checkReaches(sha, checkName("owned"), "success", soon)
		w.settled(soon)
		bound := w.claim(w.git.page()).Status.Bound
		if bound == nil || bound.OwnerID == 0 || bound.RepositoryUID == "" {
			t.Fatalf("the URL is bound to %+v", bound)
		}

		id := w.replaced()
		theirs, pushed := w.push(map[string]string{".tekton/push.yaml": definition, "README": "another commit"})
		w.deliver(pushed, http.StatusAccepted)
		w.disposed(pushed, v1alpha1.DispositionIgnored, v1alpha1.ReasonAnotherRepository)
		w.sentAgain(pushed, 1)
		status := w.claim(w.git.page()).Status
		if status.Refused == nil || status.Refused.ID != id || status.Bound.ID != bound.ID {
			t.Fatalf("the claim says %+v, want %d refused and %d bound", status, id, bound.ID)
		}
		if runs, checks, told := w.runs(), w.git.checks(theirs), w.writes(theirs, ""); len(runs) != 1 || len(checks) != 0 || len(told) != 0 {
			t.Fatalf("%d runs, want the first repository's; checks %+v, told %+v, want none", len(runs), checks, told)
		}

		_, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Patch(w.ctx, "app", types.MergePatchType,
			[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, plumbline.RepositoryIDAnnotation, status.Refused)), metav1.PatchOptions{})
		w.must(err)
		w.sentAgain(pushed, 2)
		w.checkReaches(theirs, checkName("owned"), "success", soon)
		if now := w.claim(w.git.page()).Status; now.Bound.ID != id || now.Refused != nil {
			t.Errorf("the claim says %+v, want %d bound", now, id)
		}
	})
}

// S15: where a proof is asked for, a Repository whose namespace is neither listed nor named by the
// default branch is not served; the push that adds the file is.
func TestS15AURLIsServedWithAProof(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, config: [][3]string{{"plumbline", "url-owners", "{}"}}}, func(t *testing.T, w *world) {
		sha, pushed := w.push(map[string]string{".tekton/push.yaml": pipeline("proven", "push"), ".tekton/.plumbline-namespace": "somebody-else\n"})
		w.deliver(pushed, http.StatusAccepted)
		w.disposed(pushed, v1alpha1.DispositionIgnored, v1alpha1.ReasonNotProven)
		if runs, told := w.runs(), w.writes(sha, ""); len(runs) != 0 || len(told) != 0 {
			t.Errorf("%d runs, told %+v: want none", len(runs), told)
		}
		sha, pushed = w.push(map[string]string{".tekton/.plumbline-namespace": w.ci + "\n"})
		w.deliver(pushed, http.StatusAccepted)
		w.checkReaches(sha, checkName("proven"), "success", soon)
		if !w.claim(w.git.page()).Status.Proven {
			t.Error("the claim does not say that the URL is proven")
		}
		w.settled(soon)
	})
}
