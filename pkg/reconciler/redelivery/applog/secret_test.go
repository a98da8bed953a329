// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// hanging is an API server that never answers reads of Secrets.
type hanging struct{ typedcorev1.SecretInterface }

func (h hanging) Secrets(string) typedcorev1.SecretInterface { return h }

func (hanging) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*corev1.Secret, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestHangingReadOfAppSecretIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		e.miss("missed", 1)
		secrets := e.source.secrets
		e.source.secrets = hanging{}
		began := time.Now()
		after := e.reconcile()
		if took := time.Since(began); took > 10*time.Second || after > redelivery.RetryAtMost {
			t.Errorf("it is read for %v, and again after %v", took, after)
		}
		e.source.secrets = secrets
		e.clock.Step(after)
		e.run(redelivery.ReadEvery)
		e.wantRecorded("missed")
	})
}
