// SPDX-License-Identifier: Apache-2.0

package orphans_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// A redelivery creates the event again while the check of its run is being closed. The verdict of
// that event, which may have been replaced, is reported once more. The run is not labelled, because
// its event still needs it.
func TestVerdictOfARedeliveryIsReportedAgain(t *testing.T) {
	t.Parallel()
	down := fault.Transientf(fault.ReasonGitUnavailable, "502, and it is stored")
	for name, c := range map[string]struct {
		change func(e *v1alpha1.GitEvent)
		first  error // the answer to the report that closes the check
		want   []status.Conclusion
	}{
		"it has ended": {func(e *v1alpha1.GitEvent) {
			e.MarkTrue(v1alpha1.GitEventReported, "", "")
		}, nil, []status.Conclusion{status.Cancelled, status.Success}},
		"it has, and the first is not answered": {
			func(*v1alpha1.GitEvent) {}, down, []status.Conclusion{status.Cancelled, status.Success},
		},
		"it was approved": {func(e *v1alpha1.GitEvent) { e.Status.Plan.EndsPending = true }, nil,
			[]status.Conclusion{status.Cancelled, status.Skipped, status.Success}},
		"its run goes on": {
			func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Result = nil }, nil, []status.Conclusion{status.Cancelled},
		},
		"nothing is planned yet": {
			func(e *v1alpha1.GitEvent) { e.Status = v1alpha1.GitEventStatus{} }, nil, []status.Conclusion{status.Cancelled},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.refuse = c.first
			w.during = func(events plumblineclient.GitEventInterface) {
				event := recorded()
				c.change(event)
				if _, err := events.Create(context.Background(), event, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
			w.start()
			if asked, err := w.close(); !asked || err != nil && c.first == nil {
				t.Fatal(asked, err)
			}
			var got []status.Conclusion
			for _, p := range w.puts {
				got = append(got, p.check.Conclusion)
				if verdict, closes := p.check.Conclusion == status.Success,
					p.check.Conclusion == status.Cancelled; p.check.OnlyOpen == verdict || (p.id == "") == closes {
					t.Errorf("reported %+v with the id %q", p.check, p.id)
				}
			}
			if len(got) != len(c.want) || got[0] != c.want[0] || got[len(got)-1] != c.want[len(c.want)-1] ||
				len(w.patches) != 0 {
				t.Errorf("reported %v, want %v; patched %v", got, c.want, w.patches)
			}
		})
	}
}

// The git-auth Secret of a run whose event was deleted belongs to the Repository until the run
// becomes its owner.
func TestGitAuthSecretIsDeletedWithItsRun(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.start()
	secrets := w.closer.Secrets.Secrets(tenant)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: resources.SecretName(w.run.Name),
		OwnerReferences: []metav1.OwnerReference{{Kind: "Repository", UID: "repo-uid"}}}}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.close(); err != nil || len(w.patches) != 1 {
		t.Fatal(err, w.patches)
	}
	got, err := secrets.Get(t.Context(), secret.Name, metav1.GetOptions{})
	if err != nil || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != w.run.UID ||
		got.OwnerReferences[0].Kind != "PipelineRun" {
		t.Errorf("%v: it belongs to %+v", err, got.OwnerReferences)
	}
}
