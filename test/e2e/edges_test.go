// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// Finding 18: a Git service, or what stands in front of it, that answers 200 with something else than was asked for says
// nothing of the commit: the event waits with a reason, and its pipeline runs once afterwards.
func TestAnswersThatAreNotWhatWasAskedForAreWaitedFor(t *testing.T) {
	onlyInTestAll(t)
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

// S36, finding 16: an author cannot have a run taken for signed, and what a ceiling leaves out fails the author's check with
// file and field. Another pipeline of the same commit runs.
func TestAuthorsStayBelowTheCeiling(t *testing.T) {
	onlyInTestAll(t)
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
