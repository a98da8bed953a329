// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// B1, B7: while .tekton or the commit cannot be read (502, 429, a connection that breaks, no answer
// at all) there is no failure and no check, and the event says that it waits for the Git service;
// afterwards its pipeline runs once.
func TestB1FetchFails(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, waitsForWhatCannotBeRead)
}

func waitsForWhatCannotBeRead(t *testing.T, w *world) {
	for _, test := range []struct {
		name   string
		at     operation
		reason string
		do     forge.Action
		again  int // attempts to wait for
	}{
		{"directory-502", readDirectory, "GitServiceUnavailable", forge.ServerError502HTML(), 4},
		{"file-502", readFile, "GitServiceUnavailable", forge.ServerError502HTML(), 4},
		{"file-dropped", readFile, "GitServiceUnreachable", forge.Drop(), 4},
		{"commit-503", readCommit, "GitServiceUnavailable", forge.Answer(http.StatusServiceUnavailable, nil, "{}"), 4},
		{"directory-timeout", readDirectory, "Timeout", forge.Hang(nil), 1},
		// The last one: all calls of the installation, writes above all, are paced after it.
		{"directory-429", readDirectory, "SecondaryRateLimited", forge.Answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}}, "{}"), 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := w.in(t)
			sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline(test.name, "push")})
			if test.at == readCommit {
				sha, delivery = w.undescribed(test.name)
			}
			fault := w.git.inject(test.at, forge.Fault{Do: test.do})
			w.deliver(delivery, http.StatusAccepted)
			w.hit(fault, test.again)
			wait := w.waits(sha, "plan")
			if wait.Reason != test.reason || !slices.Contains([]string{"Transient", "Throttled"}, wait.Class) {
				t.Errorf("it waits because of %s %s (%s), want %s", wait.Class, wait.Reason, wait.Message, test.reason)
			}
			w.untold(sha)
			fault.Remove()
			w.checkReaches(sha, checkName(test.name), "success", afterFault)
			w.settles(sha, afterFault)
			w.neverFailed(sha)
			w.ranOnce(test.name)
		})
	}
}

// B2: a commit without .tekton in a repository that can be read ends its event as "no pipelines"
// with one look and no other: nobody is told, and nothing is tried again.
func TestB2NoPipelines(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, endsWithoutPipelines)
}

func endsWithoutPipelines(t *testing.T, w *world) {
	sha, delivery := w.push(map[string]string{"README.md": "no pipelines"})
	w.deliver(delivery, http.StatusAccepted)
	w.settles(sha, soon)
	event := w.recordOf(delivery)
	if event.Status.Disposition != v1alpha1.DispositionIgnored || planOf(event).Reason != "NoPipelines" {
		t.Errorf("it is %s %+v, want Ignored because of NoPipelines", event.Status.Disposition, planOf(event))
	}
	// The controller goes on, and starts anew, without looking again.
	w.restart(w.controller())
	next, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("next", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(next, checkName("next"), "success", afterFault)
	looks := 0
	for _, request := range w.git.log().requests {
		if strings.Contains(request.Path+request.Query, sha) {
			looks++
		}
	}
	if looks != 1 {
		t.Errorf("%d calls about %s, want one look into its directory", looks, sha)
	}
	w.untold(sha)
	w.settled(afterFault)
}

// B2: a repository that the Git service hides is no repository without pipelines: the event waits
// for an operator, the Repository's condition says so, it is tried again slowly, and it runs once
// the repository is shown again.
func TestB2HiddenRepository(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, flags: []string{"-operator-retry=" + operatorRetry.String()}}, waitsForAHiddenRepository)
}

func waitsForAHiddenRepository(t *testing.T, w *world) {
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("hidden", "push")})
	directory := w.git.inject(readDirectory, forge.Fault{Do: w.git.says(notFound)})
	repository := w.git.inject(readRepository, forge.Fault{Do: w.git.says(notFound)})
	w.deliver(delivery, http.StatusAccepted)
	w.hit(repository, 1)
	wait := w.waits(sha, "plan")
	if wait.Class != "Operator" || wait.Reason != "RepositoryNotReadable" || wait.NotBefore == nil || wait.NotBefore.Sub(wait.Since.Time) < operatorRetry {
		t.Errorf("it waits for %+v, want an operator, and %v until the next attempt", wait, operatorRetry)
	}
	w.credentials("False", "RepositoryNotReadable")
	w.hit(repository, 3) // it is tried again
	w.untold(sha)
	w.tells(w.recordOf(delivery).Name, "RepositoryNotReadable", 1)
	directory.Remove()
	repository.Remove()
	w.checkReaches(sha, checkName("hidden"), "success", afterFault)
	w.credentials("True", "NoProblem")
	w.settles(sha, afterFault)
	w.neverFailed(sha)
	w.ranOnce("hidden")
}

// undescribed is an event whose delivery does not tell its commit's message: on GitHub any pull
// request, on GitLab a push of a new branch without new commits.
func (w *world) undescribed(name string) (string, delivery) {
	w.t.Helper()
	if w.git.kind() == githubApp {
		return w.pull(pipeline(name, "pull_request"))
	}
	file := strings.ReplaceAll(pipeline(name, "push"), "[main]", "[topic-of-"+name+"]")
	sha := w.git.commit("main", forge.Change{Files: map[string]string{".tekton/run.yaml": file}, Message: name})
	w.git.point("topic-of-"+name, sha)
	return sha, w.git.pushed("refs/heads/topic-of-" + name)
}

// pull opens a pull request of a member with one file and returns its head and its delivery.
func (w *world) pull(file string) (string, delivery) {
	w.t.Helper()
	branch := strings.ReplaceAll(w.t.Name(), "/", "-")
	w.git.grant("dev", "write")
	sha := w.git.commit(branch, forge.Change{Files: map[string]string{".tekton/run.yaml": file}, Message: branch})
	return sha, w.opened(w.git.open("", branch, "dev"))
}

// waits waits until a step of a commit's event waits, and returns what for.
func (w *world) waits(sha, step string) v1alpha1.Wait {
	w.t.Helper()
	return w.waitsBecause(sha, step, "")
}

// waitsBecause is waits for one reason.
func (w *world) waitsBecause(sha, step, reason string) (found v1alpha1.Wait) {
	w.t.Helper()
	w.eventOf(sha, "the event waits with "+step, func(event *v1alpha1.GitEvent) error {
		for _, wait := range event.Status.Waits {
			if strings.HasPrefix(wait.Step, step) && (reason == "" || wait.Reason == reason) {
				found = wait
				return nil
			}
		}
		return fmt.Errorf("its waits are %+v", event.Status.Waits)
	})
	return found
}

// untold requires that a commit has heard nothing and that nothing was started for it.
func (w *world) untold(sha string) {
	w.t.Helper()
	if writes := w.writes(sha, ""); len(writes) != 0 {
		w.t.Errorf("the commit was told %q %q, want nothing", writes[0].Name, writes[0].Title)
	}
	for _, event := range w.events() {
		if event.Spec.SHA == sha && len(event.Status.Runs) != 0 {
			w.t.Errorf("GitEvent %s has the runs %+v, want none", event.Name, event.Status.Runs)
		}
	}
}

// ranOnce requires one PipelineRun of a pipeline.
func (w *world) ranOnce(pipeline string) {
	w.t.Helper()
	n := 0
	for _, run := range w.runs() {
		if strings.HasPrefix(run.Name, pipeline) {
			n++
		}
	}
	if n != 1 {
		w.t.Errorf("%d PipelineRuns of %s, want 1", n, pipeline)
	}
}

// credentials waits for the Repository's condition about what its events wait for an operator to
// do.
func (w *world) credentials(status, reason string, says ...string) {
	w.t.Helper()
	w.conditioned(pacv1alpha1.RepositoryCredentials, status+" "+reason, says...)
}
