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

// B1, B7: while .tekton or the commit cannot be read (502, 429, a broken connection, no answer),
// there is no failure and no check, and the event says that it waits for the Git service.
// Afterwards its pipeline runs once.
func TestFailedFetchWaits(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, fetchFailureWaits)
}

func fetchFailureWaits(t *testing.T, env *environment) {
	for _, test := range []struct {
		name   string
		at     operation
		reason string
		do     forge.Action
		again  int // further attempts to wait for
	}{
		{"directory-502", readDirectory, "GitServiceUnavailable", forge.ServerError502HTML(), 4},
		{"file-502", readFile, "GitServiceUnavailable", forge.ServerError502HTML(), 4},
		{"file-dropped", readFile, "GitServiceUnreachable", forge.Drop(), 4},
		{"commit-503", readCommit, "GitServiceUnavailable", forge.Answer(http.StatusServiceUnavailable, nil, "{}"), 4},
		{"directory-timeout", readDirectory, "Timeout", forge.Hang(nil), 1},
		// The last one: all calls of the installation, writes above all, are paced after it.
		{"directory-429", readDirectory, "SecondaryRateLimited",
			forge.Answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}}, "{}"), 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := env.forSubtest(t)
			sha, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline(test.name, "push")})
			if test.at == readCommit {
				sha, delivery = env.eventWithoutMessage(test.name)
			}
			fault := env.git.inject(test.at, forge.Fault{Do: test.do})
			env.deliver(delivery, http.StatusAccepted)
			env.awaitHits(fault, test.again)
			wait := env.awaitWait(sha, "plan")
			if wait.Reason != test.reason || !slices.Contains([]string{"Transient", "Throttled"}, wait.Class) {
				t.Errorf("it waits because of %s %s (%s), want %s", wait.Class, wait.Reason, wait.Message, test.reason)
			}
			env.requireNothingReported(sha)
			fault.Remove()
			env.awaitCheck(sha, checkName(test.name), "success", afterFault)
			env.awaitSettled(sha, afterFault)
			env.requireNoFailure(sha)
			env.requireRanOnce(test.name)
		})
	}
}

// B2: a commit without .tekton in a readable repository ends its event as "no pipelines" after one
// read. Nothing is reported or retried.
func TestCommitWithoutPipelinesEnds(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, endsWithoutPipelines)
}

func endsWithoutPipelines(t *testing.T, env *environment) {
	sha, delivery := env.push(map[string]string{"README.md": "no pipelines"})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitSettled(sha, soon)
	event := env.recordOf(delivery)
	if event.Status.Disposition != v1alpha1.DispositionIgnored || planOf(event).Reason != "NoPipelines" {
		t.Errorf("it is %s %+v, want Ignored because of NoPipelines", event.Status.Disposition, planOf(event))
	}
	// The controller goes on, and restarts, without another read.
	env.restart(env.controller())
	next, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("next", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(next, checkName("next"), "success", afterFault)
	looks := 0
	for _, request := range env.git.log().requests {
		if strings.Contains(request.Path+request.Query, sha) {
			looks++
		}
	}
	if looks != 1 {
		t.Errorf("%d calls about %s, want one look into its directory", looks, sha)
	}
	env.requireNothingReported(sha)
	env.awaitAllSettled(afterFault)
}

// B2: a repository that the Git service hides is not treated as one without pipelines. The event
// waits for an operator, the Repository's condition says so, the read is retried slowly, and the
// event runs once the repository is visible again.
func TestHiddenRepositoryWaits(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, flags: []string{"-operator-retry=" + operatorRetry.String()}},
		hiddenRepositoryWaits)
}

func hiddenRepositoryWaits(t *testing.T, env *environment) {
	sha, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("hidden", "push")})
	directory := env.git.inject(readDirectory, forge.Fault{Do: env.git.says(notFound)})
	repository := env.git.inject(readRepository, forge.Fault{Do: env.git.says(notFound)})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitHits(repository, 1)
	wait := env.awaitWait(sha, "plan")
	equal(t, "the class of the wait", wait.Class, "Operator")
	equal(t, "the reason of the wait", wait.Reason, "RepositoryNotReadable")
	if wait.NotBefore == nil || wait.NotBefore.Sub(wait.Since.Time) < operatorRetry {
		t.Errorf("the next attempt is at %v, want %v after %v", wait.NotBefore, operatorRetry, wait.Since)
	}
	env.awaitCredentialsCondition("False", "RepositoryNotReadable")
	env.awaitHits(repository, 3) // it is retried
	env.requireNothingReported(sha)
	env.awaitReported(env.recordOf(delivery).Name, "RepositoryNotReadable", 1)
	directory.Remove()
	repository.Remove()
	env.awaitCheck(sha, checkName("hidden"), "success", afterFault)
	env.awaitCredentialsCondition("True", "NoProblem")
	env.awaitSettled(sha, afterFault)
	env.requireNoFailure(sha)
	env.requireRanOnce("hidden")
}

// eventWithoutMessage returns an event whose delivery lacks its commit's message: on GitHub any
// pull request, on GitLab a push of a new branch without new commits.
func (env *environment) eventWithoutMessage(name string) (string, delivery) {
	env.t.Helper()
	if env.git.kind() == githubApp {
		return env.openMemberPull(pipeline(name, "pull_request"))
	}
	file := strings.ReplaceAll(pipeline(name, "push"), "[main]", "[topic-of-"+name+"]")
	sha := env.git.commit("main", forge.Change{Files: map[string]string{".tekton/run.yaml": file}, Message: name})
	env.git.point("topic-of-"+name, sha)
	return sha, env.git.pushed("refs/heads/topic-of-" + name)
}

// openMemberPull opens a pull request of a member with one file and returns its head and its
// delivery.
func (env *environment) openMemberPull(file string) (string, delivery) {
	env.t.Helper()
	branch := strings.ReplaceAll(env.t.Name(), "/", "-")
	env.git.grant("dev", "write")
	sha := env.git.commit(branch, forge.Change{Files: map[string]string{".tekton/run.yaml": file}, Message: branch})
	return sha, env.opened(env.git.open("", branch, "dev"))
}

// awaitWait waits until a step of a commit's event waits, and returns the wait.
func (env *environment) awaitWait(sha, step string) v1alpha1.Wait {
	env.t.Helper()
	return env.awaitWaitReason(sha, step, "")
}

// awaitWaitReason is awaitWait for one reason.
func (env *environment) awaitWaitReason(sha, step, reason string) (found v1alpha1.Wait) {
	env.t.Helper()
	env.awaitEvent(sha, "the event waits with "+step, func(event *v1alpha1.GitEvent) error {
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

// requireNothingReported requires that nothing was reported to a commit and nothing was started
// for it.
func (env *environment) requireNothingReported(sha string) {
	env.t.Helper()
	if writes := env.checkWrites(sha, ""); len(writes) != 0 {
		env.t.Errorf("the commit got %q %q, want nothing", writes[0].Name, writes[0].Title)
	}
	for _, event := range env.events() {
		if event.Spec.SHA == sha && len(event.Status.Runs) != 0 {
			env.t.Errorf("GitEvent %s has the runs %+v, want none", event.Name, event.Status.Runs)
		}
	}
}

// requireRanOnce requires one PipelineRun of a pipeline.
func (env *environment) requireRanOnce(pipeline string) {
	env.t.Helper()
	n := 0
	for _, run := range env.runs() {
		if strings.HasPrefix(run.Name, pipeline) {
			n++
		}
	}
	if n != 1 {
		env.t.Errorf("%d PipelineRuns of %s, want 1", n, pipeline)
	}
}

// awaitCredentialsCondition waits for the Repository's condition that says what an operator must
// do for its events.
func (env *environment) awaitCredentialsCondition(status, reason string, says ...string) {
	env.t.Helper()
	env.awaitCondition(pacv1alpha1.RepositoryCredentials, status+" "+reason, says...)
}
