// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
)

// remarked makes the event a comment of member, who may write, on the commit that main and release
// are at.
func remarked(t *testing.T, body string, files ...git.File) *env {
	w := newEnv(t, files...)
	w.setPayload(body)
	w.edit(func(e *v1alpha1.GitEvent) {
		e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now())
		asRemark(e, w.clock.Now().Add(10*time.Second))
	})
	w.git.complete = func(e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
		if e.Comment != nil {
			e.SHA, e.BaseRef = sha, cmp.Or(e.BaseRef, "refs/heads/main")
			e.HeadRef = e.BaseRef
		}
		return e, nil
	}
	w.git.canWrite = func(string) (bool, error) { return true, nil }
	return w
}

func asRemark(e *v1alpha1.GitEvent, happened time.Time) {
	e.Spec.Trigger, e.Spec.EventType, e.Spec.Sender, e.Spec.PullRequest = v1alpha1.TriggerPush, match.CommentEvent,
		"member", nil
	e.Spec.BaseRef, e.Spec.HeadRef, e.Spec.Commit = "", "", nil
	e.Spec.Comment = &v1alpha1.Comment{ID: 9}
	e.Spec.Headers = map[string]string{"X-Event": "comment"}
	at := metav1.NewTime(happened)
	e.Spec.HappenedAt, e.Labels = &at, map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
}

// The status keeps the branch of a command on a commit, because the record does not name it. The
// next process takes it from there.
func TestCommitCommandKeepsItsBranch(t *testing.T) {
	t.Parallel()
	w := remarked(t, "/test branch:main", helloFile("hello"))
	w.settle(corev1.ConditionTrue)
	runs, e := w.runs(), w.event()
	if len(runs) != 1 || runs[0].Labels[pipelinesascode.EventType] != "test-all-comment" ||
		!strings.HasSuffix(runs[0].Annotations[pipelinesascode.Branch], "main") {
		t.Fatalf("runs %+v, reasons %v", runs, w.reasons())
	}
	if e.Spec.BaseRef != "" || e.Spec.SHA != sha || e.Status.Plan.Ref != "refs/heads/main" || e.Status.Ref != "main" ||
		e.Status.Plan.HeadSHA != sha {
		t.Errorf("spec %+v, plan %+v, ref %q", e.Spec, e.Status.Plan, e.Status.Ref)
	}
}

// S26: of all runs of the commit, only those of the same branch are stopped, and only if they were
// started before the comment was written. An event that is not planned yet decides in its own plan.
func TestCommitCancelStopsOnlyItsBranch(t *testing.T) {
	t.Parallel()
	w := remarked(t, "/cancel branch:main", helloFile("hello"))
	on := func(name, ref string, after time.Duration, change ...func(*v1alpha1.GitEvent)) {
		w.addEvent(name, "", after, append([]func(*v1alpha1.GitEvent){func(e *v1alpha1.GitEvent) {
			e.Spec.Trigger, e.Spec.EventType, e.Spec.PullRequest, e.Spec.BaseRef, e.Spec.HeadRef = v1alpha1.TriggerPush, "push",
				nil, ref, ref
			e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
		}}, change...)...)
	}
	command := func(ref string) func(*v1alpha1.GitEvent) {
		return func(e *v1alpha1.GitEvent) {
			asRemark(e, e.Spec.HappenedAt.Time)
			if ref != "" {
				e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Ref: ref}
			}
		}
	}
	on("push", "refs/heads/main", 5*time.Second)
	on("release", "refs/heads/release", 5*time.Second)
	on("tag", "refs/tags/main", 5*time.Second)
	on("later", "refs/heads/main", 11*time.Second)
	on("command", "", 5*time.Second, command("refs/heads/main"))
	on("command-elsewhere", "", 5*time.Second, command("refs/heads/release"))
	on("command-unplanned", "", 5*time.Second, command(""))
	on("another", "refs/heads/main", 5*time.Second, func(e *v1alpha1.GitEvent) {
		e.Spec.SHA = strings.Repeat("a", 40)
		e.Labels[plumbline.SubjectLabel] = e.Spec.Subject()
	})
	w.until(w.settled)
	var told []string
	for _, e := range w.events() {
		for name := range e.Annotations {
			if strings.HasPrefix(name, plumbline.CancelAnnotation) {
				told = append(told, e.Name)
			}
		}
	}
	slices.Sort(told)
	if want := []string{"command", "command-unplanned", "push"}; !slices.Equal(told, want) || len(w.git.writes) != 0 {
		t.Errorf("told %v, want %v; %d reports", told, want, len(w.git.writes))
	}
	if got := w.cancelledOnes(); !slices.Equal(got, []string{"command", "push"}) {
		t.Errorf("%v are cancelled", got)
	}
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionCancels || e.Status.Plan.Ref != "refs/heads/main" {
		t.Errorf("%s of %q", e.Status.Disposition, e.Status.Plan.Ref)
	}
}
