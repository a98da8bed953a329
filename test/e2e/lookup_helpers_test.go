// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// currentCheck returns the newest check of a name, which is the one that the service shows.
func (env *environment) currentCheck(sha, name string) (check, bool) {
	return newestOf(env.git.checks(sha), name)
}

func newestOf(checks []check, name string) (newest check, found bool) {
	for _, c := range checks {
		if c.Name == name {
			newest, found = c, true
		}
	}
	return newest, found
}

// awaitCheck waits until the current check of that name has the conclusion (or, without one, the
// status).
func (env *environment) awaitCheck(sha, name, want string, limit time.Duration) check {
	env.t.Helper()
	ctx, cancel := context.WithTimeout(env.ctx, limit)
	defer cancel()
	var last check
	err := env.git.await(ctx, sha, func(all []check) bool {
		now, found := newestOf(all, name)
		last = now
		return found && (now.Conclusion == want || now.Status == want)
	})
	if err != nil {
		env.t.Fatalf("check %q is not %s within %v but %s/%s %q: %s", name, want, limit, last.Status, last.Conclusion,
			last.Title, last.Text)
	}
	return last
}

// checkWrites returns the writes of the checks of a commit with that name, or with any, applied or
// not.
func (env *environment) checkWrites(sha, name string) (found []write) {
	for _, write := range env.git.log().writes {
		if write.SHA == sha && (name == "" || write.Name == name) {
			found = append(found, write)
		}
	}
	return found
}

// countOperations returns how many calls there were for an operation.
func (env *environment) countOperations(at operation) int {
	n := 0
	for _, request := range env.git.log().requests {
		if at == anything || request.Route == env.git.route(at) {
			n++
		}
	}
	return n
}

// requireNoFailure requires that no write of any check of the commit asked for a failure.
func (env *environment) requireNoFailure(sha string) {
	env.t.Helper()
	for _, write := range env.checkWrites(sha, "") {
		if write.Conclusion == "failure" {
			env.t.Errorf("write %d of check %q says failure: %v", write.N, write.Name, write.Body)
		}
	}
}

// runs lists the PipelineRuns of the environment.
func (env *environment) runs() []pipelinev1.PipelineRun {
	env.t.Helper()
	list, err := env.Tekton.TektonV1().PipelineRuns(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	return list.Items
}

// waitForNextSecond waits until objects that the API server stores get a later time than all
// before: it writes times in whole seconds.
func (env *environment) waitForNextSecond() {
	env.t.Helper()
	before := time.Now().Unix()
	env.eventually(soon, "another second has begun", func() error {
		if time.Now().Unix() == before {
			return errMissing
		}
		return nil
	})
}

// events lists the GitEvents of the environment.
func (env *environment) events() []v1alpha1.GitEvent {
	env.t.Helper()
	list, err := env.Plumbline.PlumblineV1alpha1().GitEvents(env.Namespace).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	return list.Items
}

// awaitAllSettled waits until every event is settled.
func (env *environment) awaitAllSettled(limit time.Duration) []v1alpha1.GitEvent {
	env.t.Helper()
	var events []v1alpha1.GitEvent
	env.eventually(limit, "every event is settled", func() error {
		events = env.events()
		if len(events) == 0 {
			return errors.New("there is none")
		}
		for i := range events {
			if !events[i].Settled() {
				return fmt.Errorf("%s: %v, waits %v", events[i].Name, events[i].Status.Conditions, events[i].Status.Waits)
			}
		}
		return nil
	})
	return events
}

// checkName returns the name of a pipeline's check.
func checkName(pipeline string) string { return application + " / " + pipeline }

// pipeline returns a PipelineRun file with one task that succeeds, for an event, with extra
// annotations ("key: value" lines). In make test the runner ends its runs, unless onTekton gives
// them to Tekton.
func pipeline(name, event string, annotations ...string) string {
	extra := ""
	for _, annotation := range annotations {
		extra += "    " + annotation + "\n"
	}
	managed := ""
	if testing.Short() {
		managed = managedLine
	}
	return fmt.Sprintf(`apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: %s
  annotations:
    pipelinesascode.tekton.dev/on-event: "[%s]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
%sspec:
%s  params:
    - name: revision
      value: "{{ revision }}"
  pipelineSpec:
    tasks:
      - name: build
        taskSpec:
          steps:
            - name: step
              image: busybox
              script: exit 0
`, name, event, extra, managed)
}

// requireRunCount requires that the environment has so many PipelineRuns.
func (env *environment) requireRunCount(want int) {
	env.t.Helper()
	if runs := env.runs(); len(runs) != want {
		env.t.Errorf("PipelineRuns %v, want %d", namesOf(runs), want)
	}
}

// equal requires the wanted value of one thing, so that a failure names the thing.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// requirePlan requires the reason and the commit of an event's plan, and that its message contains
// the wanted one.
func requirePlan(t testing.TB, what string, event v1alpha1.GitEvent, want v1alpha1.Plan) {
	t.Helper()
	got := planOf(event)
	equal(t, what+": the plan's reason", got.Reason, want.Reason)
	equal(t, what+": the plan's commit", got.HeadSHA, want.HeadSHA)
	if !strings.Contains(got.Message, want.Message) {
		t.Errorf("%s: the plan says %q, want %q in it", what, got.Message, want.Message)
	}
}

// newClaimedEnvironment is newEnvironment for tests that wait at once until deliveries are
// accepted.
func newClaimedEnvironment(t *testing.T, s setup) *environment {
	t.Helper()
	env := newEnvironment(t, s)
	env.awaitClaimed()
	return env
}

// errOf returns the error of a call whose result is not needed.
func errOf[T any](_ T, err error) error { return err }

// containsAll reports whether a text has all the words.
func containsAll(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
