// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// typical gives the event typical values of a real service.
func typical(e *v1alpha1.GitEvent) {
	const id = "0f4c1ad0-5b3e-11f0-9d7c-6a0d3e2b1c4f"
	e.Spec.DeliveryKey, e.Spec.InstallationID = id, 12345678
	e.Spec.Repository.UID, e.UID = types.UID(id), types.UID(id)
	e.Spec.Before, e.Spec.Project.DefaultBranch = sha, "main"
	e.Spec.Commit = &v1alpha1.Commit{
		Title: "Explain in the guide how a pipeline is chosen", URL: e.Spec.Project.URL + "/commit/" + sha,
	}
	e.Spec.Headers = map[string]string{"X-Github-Event": "push", "X-Github-Delivery": id, "X-Github-Hook-Id": "123456789",
		"X-Github-Hook-Installation-Target-Id": "1234567", "X-Github-Hook-Installation-Target-Type": "integration",
		"User-Agent": "GitHub-Hookshot/1234567"}
	e.Spec.Payload = blobOf(e.Name)
	e.Spec.ReceivedAt = metav1.Now()
}

func blobOf(name string) v1alpha1.BlobReference {
	return v1alpha1.BlobReference{Name: name + "-a1b2c3", Digest: blob.Digest([]byte(name)), Chunks: 1, Size: 8192}
}

// What is kept of a settled event is bounded, whatever its texts are: etcd holds settled-cap of
// them. The figures are in docs/operations.md. The API server's managed fields come on top
// (test/e2e).
func TestSettledEventIsSmall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("what was said <because> of it. ", 1000)
	verbose := func(e *v1alpha1.GitEvent) {
		for i := range e.Status.Runs {
			e.Status.Runs[i].Note = long
			if i%2 == 0 {
				e.Status.Runs[i].Refused = &v1alpha1.Refusal{Reason: "AdmissionDenied", Message: long}
			} else {
				e.Status.Runs[i].Result = &v1alpha1.Result{
					Outcome: v1alpha1.OutcomeFailed, Reason: "Failed", Message: long, Text: long, Brief: long,
				}
			}
		}
		for i := range e.Status.Plan.Decisions {
			e.Status.Plan.Decisions[i].Reason = long
		}
		e.Status.Plan.Message = long
	}
	twenty := append([]git.File{helloFile("hello"), helloFile("second")}, oneFile(18, "on-label: bug")...)
	for name, c := range map[string]struct {
		files  []git.File
		change func(*v1alpha1.GitEvent)
		limit  int
	}{
		"two runs":                          {[]git.File{helloFile("hello"), helloFile("second")}, nil, 3 << 10},
		"two runs and 18 other pipelines":   {twenty, nil, 5 << 10},
		"all of their texts are very long":  {twenty, verbose, 11 << 10},
		"200 runs":                          {oneFile(200), nil, 40 << 10},
		"200 runs and their texts are long": {oneFile(200), verbose, 140 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, c.files...)
			w.edit(typical)
			w.settle(corev1.ConditionTrue)
			settled := w.event()
			if c.change != nil {
				c.change(settled)
				settled.Status.Phase = ""
				v1alpha1.Fit(&settled.Status) // as it was recorded
				attempt.Shrink(settled, w.clock.Now(), true)
			}
			stub, err := json.Marshal(settled)
			w.must(err)
			t.Logf("%d bytes", len(stub))
			if len(stub) > c.limit {
				t.Errorf("the stub has %d bytes, want at most %d", len(stub), c.limit)
			}
		})
	}
}
