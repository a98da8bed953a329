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

// busy is a service while whose log is read others write the ConfigMap.
type busy struct {
	*world
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
	return b.world.Page(ctx, cursor)
}

func (w *world) tracked() *corev1.ConfigMap {
	w.Helper()
	found, err := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), system, asks.Ledger)
	if err != nil {
		w.Fatal(err)
	}
	return found.(*corev1.ConfigMap)
}

// What GitLab's webhooks give up is in the same ConfigMap, and a tenant with a server of its own
// can have it written at any time. That keeps nobody's deliveries from being found.
func TestOthersWhoWriteTheConfigMapHoldUpNothing(t *testing.T) {
	w := newWorld(t)
	w.kube.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		update, _ := a.(clienttesting.UpdateAction)
		if written, _ := update.GetObject().(metav1.Object); written.GetResourceVersion() != w.tracked().ResourceVersion {
			return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), asks.Ledger, nil)
		}
		return false, nil, nil
	})
	service := &busy{world: w}
	w.process.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
	w.run(time.Minute)
	w.receive = nobody
	w.deliver("missed", 1)
	w.receive = nil
	w.heard()
	w.run(time.Minute)
	w.wantRecorded("missed")
	if got := w.tracked().Data["gitlab.1"]; got != fmt.Sprint(service.writes) {
		t.Errorf("the others' part is %q after %d writes", got, service.writes)
	}
}
