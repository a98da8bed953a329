// SPDX-License-Identifier: Apache-2.0

package orphans_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	logtesting "knative.dev/pkg/logging/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// givenUp returns the event of the run, settled after its reports were given up. Of its runs one
// succeeded, one was refused before it was created, one was deleted with its namespace, and one was
// reported before.
func givenUp() *v1alpha1.GitEvent {
	event := recorded()
	event.Status.Phase, event.Status.Unreported = v1alpha1.PhaseSettled, true
	event.MarkWaiting(v1alpha1.GitEventReported, "RepositoryGone", "it is gone")
	event.Status.Runs = append(event.Status.Runs,
		v1alpha1.Run{Namespace: tenant, Name: "never", Pipeline: "never",
			Refused: &v1alpha1.Refusal{Reason: "AdmissionDenied", Message: "no"}},
		v1alpha1.Run{
			Namespace: tenant, Name: "gone", UID: "gone-uid", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeDeleted},
		})
	event.Status.Checks = []v1alpha1.Check{{Key: "build-1", ID: "7"}, {Key: "never", ID: "8"}, {Key: "gone", ID: "9"}}
	return event
}

func (w *env) report() (asked bool, err error) { return w.reportOf("push-1", "event-uid") }

func (w *env) reportOf(event string, uid types.UID) (asked bool, err error) {
	settings := config.NewStore(logtesting.TestLogger(w.t))
	settings.OnConfigChanged(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}})
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: event, UID: uid}}
	err = w.closer.Report(settings.ToContext(w.t.Context()), object, func(namespace string) bool {
		asked = namespace == tenant
		return !w.tooMany
	})
	return asked, err
}

func (w *env) event() *v1alpha1.GitEvent {
	w.t.Helper()
	event, err := w.closer.Events.Get(w.t.Context(), "push-1", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return event
}

// The event's record is reported when that is possible, whether or not there is a PipelineRun.
func TestGivenUpReportIsRepeatedLater(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.objects = append(w.objects, givenUp())
	w.start()
	if asked, err := w.report(); !asked || err != nil {
		t.Fatal(asked, err)
	}
	want := map[string]status.Conclusion{"build-1": status.Success, "never": status.Failure, "gone": status.Cancelled}
	if len(w.puts) != len(want) || len(w.patches) != 2 {
		t.Errorf("reported %+v, patched %v", w.puts, w.patches)
	}
	for _, p := range w.puts {
		if p.check.Conclusion != want[p.check.Key] || !p.check.OnlyOpen || p.head.SHA != sha || p.id == "" {
			t.Errorf("reported %+v", p)
		}
	}
	event := w.event()
	if event.Status.Unreported || len(event.Status.Checks) != 0 ||
		!event.Status.GetCondition(v1alpha1.GitEventReported).IsTrue() {
		t.Errorf("the event says %+v", event.Status)
	}
	if asked, err := w.report(); asked || err != nil {
		t.Errorf("it is reported again: %v, %v", asked, err)
	}
}

func TestRemainingChecksAreReportedAnHourLater(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.objects = append(w.objects, givenUp())
	w.refuses = func(git.Head) error {
		if len(w.puts) > 1 {
			return fault.Transientf(fault.ReasonGitUnavailable, "down")
		}
		return nil
	}
	w.start()
	if asked, err := w.report(); !asked || err == nil || len(w.event().Status.Checks) != 2 ||
		!w.event().Status.Unreported {
		t.Fatalf("asked %v, %v; left %+v", asked, err, w.event().Status.Checks)
	}
	w.refuses, w.puts = nil, nil
	if asked, _ := w.report(); asked {
		t.Error("it is called again at once")
	}
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	if asked, err := w.report(); !asked || err != nil || len(w.puts) != 2 || w.event().Status.Unreported {
		t.Errorf("asked %v, %v; reported %+v", asked, err, w.puts)
	}
}

// The Git service refuses a check. Others, of this event or of another one, are closed.
func TestRefusedCheckDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	other := givenUp()
	other.Name, other.UID = "push-2", "other-uid"
	w.objects = append(w.objects, givenUp(), other)
	tried := 0
	w.refuses = func(git.Head) error {
		if tried++; tried == 1 {
			return fault.Operatorf(fault.ReasonGitRejected, "no such commit")
		}
		return nil
	}
	w.start()
	if _, err := w.report(); err == nil || len(w.puts) != 3 {
		t.Errorf("%v; tried %+v", err, w.puts)
	}
	if event := w.event(); len(event.Status.Checks) != 1 || event.Status.Checks[0].Key != "build-1" ||
		!event.Status.Unreported {
		t.Errorf("left %+v", event.Status)
	}
	if asked, err := w.reportOf("push-2", "other-uid"); !asked || err != nil {
		t.Errorf("the other event is asked for %v, %v", asked, err)
	}
}

func TestNamespaceAboveItsShareWaitsForTheNextPass(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.objects, w.tooMany = append(w.objects, givenUp()), true
	w.start()
	if _, err := w.report(); err != nil || len(w.puts) != 0 {
		t.Fatal(err, w.puts)
	}
	w.tooMany = false
	if _, err := w.report(); err != nil || len(w.puts) != 3 {
		t.Errorf("%v; reported %+v", err, w.puts)
	}
}

func TestOtherEventsAreNotReported(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(e *v1alpha1.GitEvent){
		"everything was reported":       func(e *v1alpha1.GitEvent) { e.Status.Unreported = false },
		"the event is open":             func(e *v1alpha1.GitEvent) { e.Status.Phase = "" },
		"its Git service is not served": func(e *v1alpha1.GitEvent) { e.Spec.Provider = "none" },
		"there is no such event":        func(e *v1alpha1.GitEvent) { e.Name = "push-2" },
	} {
		w := newEnv(t)
		event := givenUp()
		change(event)
		w.objects = append(w.objects, event)
		w.start()
		if asked, err := w.report(); asked || err != nil || len(w.puts) != 0 {
			t.Errorf("%s: asked %v, %v; reported %+v", name, asked, err, w.puts)
		}
	}
}
