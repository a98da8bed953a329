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
)

// hanging is an API server that never answers about Secrets.
type hanging struct{ typedcorev1.SecretInterface }

func (h hanging) Secrets(string) typedcorev1.SecretInterface { return h }

func (hanging) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*corev1.Secret, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAnAppSecretWhoseReadHangsIsReadAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.receive = nobody
		w.deliver("missed", 1)
		w.receive = nil
		secrets := w.process.secrets
		w.process.secrets = hanging{}
		began := time.Now()
		after := w.reconcile()
		if took := time.Since(began); took > 10*time.Second || after > retryLookAtMost {
			t.Errorf("it is read for %v, and again after %v", took, after)
		}
		w.process.secrets = secrets
		w.clock.Step(after)
		w.run(lookEvery)
		w.wantRecorded("missed")
	})
}
