// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changedAt is what the API server records of a change of fields.
func changedAt(second int64, fields string) []metav1.ManagedFieldsEntry {
	at := metav1.Unix(second, 0)
	return []metav1.ManagedFieldsEntry{{Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}}
}

// A Secret that has the value that the pods saw hides no log: it changed before, or only its labels
// did, or it is the run's token, which is renewed.
func TestReadMasksSecretsThatChangedBefore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		secret string
		second int64
		fields string
	}{
		"before":         {"s", 99, `{"f:data":{"f:a":{}}}`},
		"its labels":     {"s", 101, `{"f:metadata":{"f:labels":{"f:a":{}}}}`},
		"it was renewed": {"gitauth", 101, `{"f:data":{"f:a":{}}}`},
	} {
		f := newFixture(t)
		f.secrets[test.secret] = map[string][]byte{"a": []byte("canary-value")}
		_, pod := f.failed("unit", "canary-value")
		pod.CreationTimestamp, f.managed = metav1.Unix(100, 0), changedAt(test.second, test.fields)
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: test.secret},
		}}}
		with := request()
		with.Secret = "gitauth"
		if got, _ := f.reader().Read(t.Context(), with); len(got.Steps) != 1 || got.Steps[0].Text != hidden {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The text of a check is the same after each attempt.
func TestReadNamesTheFirstPodThatIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.failed("unit", "text")
	for _, task := range []string{"d", "c", "a", "b", "e", "f"} {
		other, pod := f.failed(task, "")
		other.Spec.ServiceAccountName = "deployer"
		f.update(other)
		delete(f.pods, pod.Name)
	}
	for range 10 {
		if got, _ := f.read(); got.Missing == nil || got.Missing.Object != "pod run-a-pod" {
			t.Fatalf("%+v", got.Missing)
		}
	}
}
