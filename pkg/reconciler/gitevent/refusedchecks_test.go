// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// A check that the Git service refuses because of its content delays no other check of its event.
func TestRefusedCheckDelaysNoOther(t *testing.T) {
	t.Parallel()
	w, refused := newEnv(t, helloFile("bad"), helloFile("good")), 0
	w.git.asked = func(check status.Check) error {
		if strings.HasPrefix(check.Key, "bad-") && check.Conclusion != "" {
			refused++
			return fault.Operatorf(fault.ReasonGitRejected, "422 Validation Failed")
		}
		return nil
	}
	for range 3 {
		_, _ = w.reconcile()
	}
	for _, ends := range []string{"bad-", "good-"} {
		w.uncounted(func() *Reconciler {
			for _, run := range w.runs() {
				if strings.HasPrefix(run.Name, ends) {
					run.Status.SetCondition(&apis.Condition{
						Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue, Reason: "Done",
					})
					w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
				}
			}
			return nil
		})
		_, _ = w.reconcile()
	}
	for range 5 {
		w.advance(time.Second)
		_, _ = w.reconcile()
	}
	if refused != 1 {
		t.Errorf("the refused check is sent %d times in five seconds, want once in five minutes", refused)
	}
	for _, check := range w.git.checks {
		if want := map[bool]status.Conclusion{true: status.Success}[strings.HasPrefix(check.Key,
			"good-")]; check.Conclusion != want {
			t.Errorf("the check of %s says %q, want %q", check.Key, check.Conclusion, want)
		}
	}
	w.git.asked = nil
	w.settle(corev1.ConditionTrue)
}

// Many checks that are refused for the same reason delay no other, either.
func TestManyRefusedChecksDelayNoOther(t *testing.T) {
	t.Parallel()
	files := []git.File{helloFile("good")}
	for n := range 30 {
		files = append(files, helloFile(fmt.Sprint("bad", n)))
	}
	w := newEnv(t, files...)
	good, refused := status.Conclusion(""), map[string]int{}
	w.git.asked = func(check status.Check) error {
		if strings.HasPrefix(check.Key, "good-") {
			good = check.Conclusion
			return nil
		}
		sent := fmt.Sprint(check.Key, check.State, check.Conclusion)
		if refused[sent]++; refused[sent] > 1 {
			t.Errorf("%s is sent again within a minute", sent)
		}
		return fault.Operatorf(fault.ReasonGitRejected, "422 Validation Failed")
	}
	for range 20 {
		_, _ = w.reconcile()
		w.advance(3 * time.Second)
		w.uncounted(func() *Reconciler { w.finishRuns(corev1.ConditionTrue); return nil })
	}
	if good != status.Success {
		t.Errorf("after a minute the check that is not refused says %q", good)
	}
}

// Anybody may create a TaskRun that counts as the run's and refers to a name that no client can
// request.
func TestUnaskableTaskNameHidesNoVerdict(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.asked = func(action clienttesting.Action) error {
		if action.Matches("get", "tasks") {
			return errors.New(`invalid resource name "a/b": [may not contain '/']`)
		}
		return nil
	}
	taskRun := &pipelinev1.TaskRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.runs()[0].Namespace, Name: "made-by-hand",
			Labels: map[string]string{"tekton.dev/pipelineRun": w.runs()[0].Name}},
		Spec: pipelinev1.TaskRunSpec{TaskRef: &pipelinev1.TaskRef{Name: "a/b"}},
	}
	taskRun.Status.SetCondition(&apis.Condition{
		Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: "TaskRunResolutionFailed",
	})
	w.must(w.tekton.Tracker().Add(taskRun))
	w.finishRuns(corev1.ConditionTrue)
	_, _ = w.reconcile()
	w.wantSuccess()
}

// Hundreds of checks that are refused for the same reason do not exhaust the rate limit of the
// other Repositories of an installation.
func TestManyRefusedChecksArePolledSlowly(t *testing.T) {
	t.Parallel()
	var files []git.File
	for n := range 100 {
		files = append(files, helloFile(fmt.Sprint("bad", n)))
	}
	w := newEnv(t, files...)
	asked := 0
	w.git.asked = func(status.Check) error {
		asked++
		return fault.Operatorf(fault.ReasonGitRejected, "422 Validation Failed")
	}
	q := newQueue(w)
	q.run(w.clock.Now().Add(5 * time.Minute))
	asked = 0
	q.run(w.clock.Now().Add(10 * time.Minute))
	if most := 2*(10*60/30*3) + 30; asked == 0 || asked > most {
		t.Errorf(
			"%d checks are sent in ten minutes, at most %d are due: three each half minute, and as many at the end of a rest",
			asked, most)
	}
}

// After an outage of days some calls still fail. Nothing is given up because of one.
func TestRefusalAfterAnOutageIsRetried(t *testing.T) {
	t.Parallel()
	w := refusing(t, helloFile("hello"))
	var told []string
	w.git.err = errAllDown
	if after := w.reconcileEvery(time.Hour, 4*oneDay, &told); after >= 0 {
		t.Fatalf("ended after %v", after)
	}
	w.git.err, w.git.filesErr = nil, errBlob
	if after := w.reconcileEvery(10*time.Minute, 50*time.Minute, &told); after >= 0 {
		t.Fatalf("given up %v after the outage: %+v", after, w.event().Status.Plan)
	}
	w.git.filesErr = nil
	w.settle(corev1.ConditionTrue)
	if got := w.conclusions()["hello"]; got != status.Success {
		t.Errorf("hello: %q", got)
	}
}
