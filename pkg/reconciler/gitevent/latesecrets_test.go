// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestSettledEventIsMarkedForLateSecrets(t *testing.T) {
	t.Parallel()
	for _, marked := range []bool{true, false} {
		w := newEnv(t, helloFile("hello"))
		if !marked {
			w.edit(func(e *v1alpha1.GitEvent) { e.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(time.Hour)) })
		}
		w.settle(corev1.ConditionTrue)
		if got := w.event().Status.LateSecrets; got != marked {
			t.Errorf("marked %v, want %v", got, marked)
		}
	}
}
