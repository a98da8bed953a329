// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// busy is a service that has the ConfigMap written by others during each read.
type busy struct {
	*env
	writes int
}

func (b *busy) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	b.writes++
	cm := b.tracked().DeepCopy()
	cm.ResourceVersion = fmt.Sprint(b.writes)
	cm.Data = map[string]string{"gitlab.1": cm.ResourceVersion, ledgerKey: cm.Data[ledgerKey]}
	if err := b.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, system); err != nil {
		return nil, "", err
	}
	return b.env.Page(ctx, cursor)
}

func (e *env) tracked() *corev1.ConfigMap {
	e.Helper()
	found, err := e.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), system, asks.Ledger)
	if err != nil {
		e.Fatal(err)
	}
	return found.(*corev1.ConfigMap)
}

// The ConfigMap also holds what GitLab's webhooks give up, and a user with a server of its own can
// have it written at any time.
func TestOtherWritersOfTheConfigMapDelayNothing(t *testing.T) {
	e := newEnv(t)
	e.kube.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		update, _ := a.(clienttesting.UpdateAction)
		if written, _ := update.GetObject().(metav1.Object); written.GetResourceVersion() != e.tracked().ResourceVersion {
			return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), asks.Ledger, nil)
		}
		return false, nil, nil
	})
	service := &busy{env: e}
	e.source.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
	e.run(time.Minute)
	e.miss("missed", 1)
	e.signal()
	e.run(time.Minute)
	e.wantRecorded("missed")
	if got := e.tracked().Data["gitlab.1"]; got != fmt.Sprint(service.writes) {
		t.Errorf("the others' part is %q after %d writes", got, service.writes)
	}
}
