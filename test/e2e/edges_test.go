// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// Finding 18: a Git service, or what stands in front of it, that answers 200 with something else than was asked for says
// nothing of the commit: the event waits with a reason, and its pipeline runs once afterwards.
func TestAnswersThatAreNotWhatWasAskedForAreWaitedFor(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		page := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
		for _, test := range []struct {
			name string
			at   operation
			do   forge.Action
		}{
			{"directory-page", readDirectory, forge.Answer(http.StatusOK, page, "<html>Log in</html>")},
			{"directory-nothing", readDirectory, forge.Answer(http.StatusOK, nil, "")},
			{"directory-object", readDirectory, forge.Answer(http.StatusOK, nil, `{"status":"ok"}`)},
			{"file-page", readFile, forge.Answer(http.StatusOK, page, "<html>Log in</html>")},
			{"file-json", readFile, forge.Answer(http.StatusOK, nil, `{"content":"","encoding":"base64","size":0}`)},
			{"file-nothing", readFile, forge.Answer(http.StatusOK, nil, "")},
		} {
			t.Run(test.name, func(t *testing.T) {
				w := w.in(t)
				sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline(test.name, "push")})
				fault := w.git.inject(test.at, forge.Fault{Do: test.do})
				w.deliver(delivery, http.StatusAccepted)
				w.hit(fault, 2)
				if wait := w.waits(sha, "plan"); wait.Class != "Transient" || wait.Reason != "BadAnswer" || strings.Contains(wait.Message, "Log in") {
					t.Errorf("it waits because of %s %s (%s), want Transient BadAnswer without the page", wait.Class, wait.Reason, wait.Message)
				}
				w.untold(sha)
				fault.Remove()
				w.checkReaches(sha, checkName(test.name), "success", afterFault)
				w.settles(sha, afterFault)
				w.neverFailed(sha)
				w.ranOnce(test.name)
			})
		}
	})
}

// S30, finding 15: a Git service that a tenant names is not called at an address inside unless the administrator lists it.
// The GitHub that the installation itself names may be anywhere.
func TestAGitServiceInsideIsNotCalled(t *testing.T) {
	t.Parallel()
	forEachKind(t, func(t *testing.T, on kind) {
		w := newWorld(t, setup{service: on, receivers: 1, controllers: 1, flags: []string{"-operator-retry=" + operatorRetry.String()},
			config: [][3]string{{"plumbline", "git-allowed-hosts", ""}}})
		w.claimed()
		sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("inside", "push")})
		before := len(w.git.log().requests)
		w.deliver(delivery, http.StatusAccepted)
		if on == gitLab {
			wait := w.waitsBecause(sha, "plan", "AddressRefused")
			if wait.Class != "Operator" || !strings.Contains(wait.Message, "adds 127.0.0.1 to git-allowed-hosts in the ConfigMap plumbline") {
				t.Errorf("it waits because of %s %s (%s), want what to set", wait.Class, wait.Reason, wait.Message)
			}
			w.credentials("False", "AddressRefused")
			w.untold(sha)
			if called := w.git.log().requests[before:]; len(called) != 0 {
				t.Errorf("it was called: %+v", called)
			}
			w.configure("git-allowed-hosts", "127.0.0.0/8")
		}
		w.checkReaches(sha, checkName("inside"), "success", afterFault)
		w.settles(sha, afterFault)
		w.credentials("True", "NoProblem")
		w.neverFailed(sha)
		w.ranOnce("inside")
		w.invariants()
	})
}

// S13, finding 12: a policy of teams cannot be evaluated by this version, so nobody's pull request runs, and the Repository
// says why. Pushes are not what a policy is about. Without the policy members' pull requests run again.
func TestAPolicyThatCannotBeEvaluatedDenies(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("dev", "write")
		w.git.commit("main", forge.Change{Files: map[string]string{"README.md": "nothing to run"}, Message: "first"})
		w.settings(`{"policy":{"pull_request":["release-managers"]}}`, "False NotEvaluated", "settings.policy")
		pull := func(branch string) (string, delivery) {
			sha := w.git.commit(branch, forge.Change{Files: map[string]string{".tekton/run.yaml": pipeline("of-"+branch, "pull_request")}, Message: branch})
			return sha, w.opened(w.git.open("", branch, "dev"))
		}
		denied, delivery := pull("denied")
		w.deliver(delivery, http.StatusAccepted)
		w.settles(denied, soon)
		event := w.recordOf(delivery)
		if event.Status.Disposition != v1alpha1.DispositionPending || len(event.Status.Runs) != 0 || !strings.Contains(planOf(event).Message, "policy") {
			t.Errorf("the pull request is %s %q with %d runs, want it pending because of the policy", event.Status.Disposition, planOf(event).Message, len(event.Status.Runs))
		}
		if all := w.git.checks(denied); len(all) != 1 || all[0].Conclusion != "" {
			t.Errorf("the commit has the checks %+v, want one that asks for approval", all)
		}
		pushed, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("pushed", "push")})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(pushed, checkName("pushed"), "success", afterFault)

		w.settings(`{"policy":null}`, "True NoProblem", "")
		allowed, delivery := pull("allowed")
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(allowed, checkName("of-allowed"), "success", afterFault)
		w.settled(afterFault)
		w.ranOnce("of-allowed")
	})
}

// settings patches the Repository's settings and waits for its condition about them.
func (w *world) settings(patch, want, says string) {
	w.t.Helper()
	repositories := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci)
	_, err := repositories.Patch(w.ctx, "app", types.MergePatchType, []byte(`{"spec":{"settings":`+patch+`}}`), metav1.PatchOptions{})
	w.must(err)
	w.eventually(soon, "the Repository's condition Settings is "+want, func() error {
		repository, err := repositories.Get(w.ctx, "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition := repository.Status.GetCondition(pacv1alpha1.RepositorySettings)
		if condition == nil || string(condition.Status)+" "+condition.Reason != want || !strings.Contains(condition.Message, says) {
			return fmt.Errorf("it is %v", condition)
		}
		return nil
	})
}

// S36, finding 16: an author cannot have a run taken for signed, and what a ceiling leaves out fails the author's check with
// file and field. Another pipeline of the same commit runs.
func TestAuthorsStayBelowTheCeiling(t *testing.T) {
	t.Parallel()
	config := [][3]string{{"plumbline", "run-pod-security", "baseline"}, {"plumbline", "run-service-accounts", "builder"}}
	forEachService(t, setup{receivers: 1, controllers: 1, config: config}, func(t *testing.T, w *world) {
		signs := strings.Replace(pipeline("signs", "push"), "  annotations:\n", "  annotations:\n    chains.tekton.dev/signed: \"true\"\n", 1)
		asks := func(name, template string) string {
			return strings.Replace(pipeline(name, "push"), "\nspec:\n", "\nspec:\n  taskRunTemplate: "+template+"\n", 1)
		}
		sha, delivery := w.push(map[string]string{
			".tekton/signs.yaml": signs,
			".tekton/host.yaml":  asks("host", "{podTemplate: {hostNetwork: true}}"),
			".tekton/admin.yaml": asks("admin", "{serviceAccountName: cluster-admin}"),
		})
		w.deliver(delivery, http.StatusAccepted)
		for name, field := range map[string]string{
			"host":  ".tekton/host.yaml: spec.taskRunTemplate.podTemplate.hostNetwork is true",
			"admin": ".tekton/admin.yaml: spec.taskRunTemplate.serviceAccountName is",
		} {
			if told := w.checkReaches(sha, checkName(name), "failure", soon); !told.Tells(field) {
				t.Errorf("%s: the check says %q %q, want %q", name, told.Title, told.Text, field)
			}
		}
		w.checkReaches(sha, checkName("signs"), "success", afterFault)
		w.settles(sha, afterFault)
		for _, run := range w.runs() {
			if run.Annotations["chains.tekton.dev/signed"] != "" || !strings.HasPrefix(run.Name, "signs") {
				t.Errorf("PipelineRun %s has the annotations %v, want the one that is allowed, without Chains' keys", run.Name, run.Annotations)
			}
		}
		w.ranOnce("signs")
	})
}
