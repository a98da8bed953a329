// SPDX-License-Identifier: Apache-2.0

package orphans_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// unpatched returns the event of the run, settled after an hour of refused patches.
func unpatched(ids ...string) *v1alpha1.GitEvent {
	event := recorded()
	event.Status.Phase = v1alpha1.PhaseSettled
	event.MarkNotAnnotated("AdmissionDenied", "a policy says no")
	for i, id := range ids {
		check := v1alpha1.Check{Key: event.Status.Runs[i].Name, ID: id, Concluded: true}
		event.Status.Checks = append(event.Status.Checks, check)
	}
	return event
}

// The patches of a settled event that were refused are made later, once, without a report.
func TestRefusedPatchesAreRepeatedLater(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.objects = append(w.objects, unpatched("7", "8"))
	w.start()
	if asked, err := w.close(); asked || err != nil {
		t.Fatal(asked, err)
	}
	if len(w.puts) != 0 || len(w.patches) != 1 {
		t.Fatalf("%d reports, patches %v", len(w.puts), w.patches)
	}
	for _, text := range []string{`"id":"7"`, `"pipelinesascode.tekton.dev/state":"completed"`} {
		if !strings.Contains(w.patches[0], text) {
			t.Errorf("the patch has no %s: %s", text, w.patches[0])
		}
	}
	annotated := func() bool { return w.event().Status.GetCondition(v1alpha1.GitEventAnnotated).IsTrue() }
	if left := w.event().Status.Checks; len(left) != 1 || left[0].ID != "8" || annotated() {
		t.Errorf("checks %+v, annotated %t: the other run is not patched yet", left, annotated())
	}
	w.run.Name, w.run.UID = "other", "other-uid"
	if _, err := w.close(); err != nil || len(w.patches) != 2 {
		t.Fatal(err, w.patches)
	}
	if left := w.event().Status.Checks; len(left) != 0 || !annotated() {
		t.Errorf("checks %+v, annotated %t", left, annotated())
	}
}

// Refused patches are retried after an hour, two, four, and then once a day.
func TestRefusedPatchesBackOff(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.objects, w.denies = append(w.objects, unpatched("7")), errors.New("a policy says no")
	w.start()
	for range 4 * 24 * 6 { // a pass each ten minutes
		_, _ = w.close()
		w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
	}
	if n := len(w.patches); n < 5 || n > 9 || len(w.puts) != 0 {
		t.Errorf("%d patches in four days, %d reports", n, len(w.puts))
	}
	w.denies = nil
	w.clock.SetTime(w.clock.Now().Add(24 * time.Hour))
	if _, err := w.close(); err != nil || len(w.event().Status.Checks) != 0 {
		t.Errorf("%v, checks %+v", err, w.event().Status.Checks)
	}
}

// A run is patched only if its settled event has recorded this object and its end, and has reported
// it.
func TestOtherRunsAreNotPatched(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *env, e *v1alpha1.GitEvent){
		"the event is open":           func(_ *env, e *v1alpha1.GitEvent) { e.Status.Phase = "" },
		"the event has to report":     func(_ *env, e *v1alpha1.GitEvent) { e.Status.Unreported = true },
		"it is another object":        func(w *env, _ *v1alpha1.GitEvent) { w.run.UID = "another" },
		"it is another namespace's":   func(w *env, _ *v1alpha1.GitEvent) { w.run.Namespace = "others" },
		"it has no end":               func(_ *env, e *v1alpha1.GitEvent) { e.Status.Runs[0].Result = nil },
		"the Git service is not here": func(_ *env, e *v1alpha1.GitEvent) { e.Spec.Provider = "none" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, event := newEnv(t), unpatched("7")
			change(w, event)
			w.objects = append(w.objects, event)
			w.start()
			if asked, err := w.close(); asked || err != nil || len(w.puts)+len(w.patches) != 0 {
				t.Errorf("asked %v, %v; reports %v, patches %v", asked, err, w.puts, w.patches)
			}
		})
	}
}
