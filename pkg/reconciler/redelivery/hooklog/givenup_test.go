// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// failWrites makes some writes of the ConfigMap fail.
func (e *env) failWrites(n int, err error) {
	e.kube.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if n == 0 || err == nil {
			return false, nil, nil
		}
		n--
		return true, nil, err
	})
}

// The Event comes once, whatever processes come later and although the first writes fail. GitLab's
// log lists the delivery for a week.
func TestGivenUpDeliveryIsReportedOnce(t *testing.T) {
	for name, err := range map[string]error{
		"":                 nil,
		" after conflicts": apierrors.NewConflict(corev1.Resource("configmaps"), asks.Ledger, nil),
		" after an outage": apierrors.NewServiceUnavailable("etcd is away"),
	} {
		t.Run("refused"+name, func(t *testing.T) {
			e := newEnv(t)
			e.failWrites(5, err)
			e.missed("bad")
			e.receive = refuses("bad")
			for i := range 60 {
				e.deliver(fmt.Sprint("good", i))
				e.run(10 * time.Minute)
			}
			e.wantReportedOnce()
		})
		t.Run("gone"+name, func(t *testing.T) {
			e := newEnv(t)
			e.failWrites(5, err)
			e.missed("bad")
			e.gone = true
			e.run(time.Hour)
			e.wantReportedOnce()
		})
	}
}

// wantReportedOnce starts other processes, and wants one Event.
func (e *env) wantReportedOnce() {
	e.Helper()
	e.start()
	e.run(time.Hour)
	e.start()
	e.run(time.Hour)
	if n := len(e.events.Events); n != 1 {
		e.Errorf("%d Events", n)
	}
	cm, err := e.source.givenUp.store.Read(e.Context())
	if err != nil || cm.Data["github.json"] != "theirs" {
		e.Errorf("the ConfigMap has %q, %v", cm.Data, err)
	}
}

func TestGivenUpDeliveryIsReportedWithoutTheConfigMap(t *testing.T) {
	e := newEnv(t)
	if err := e.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("configmaps"), system,
		asks.Ledger); err != nil {
		t.Fatal(err)
	}
	e.missed("a")
	e.gone = true
	e.run(time.Hour)
	if n := len(e.events.Events); n != 1 {
		t.Errorf("%d Events", n)
	}
}

// What is stored is bounded for each Repository, for all together, and in time.
func TestStoredGivenUpDeliveriesAreBounded(t *testing.T) {
	e := newEnv(t)
	now := e.clock.Now()
	add := func(repository, guid string) {
		t.Helper()
		if err := e.source.givenUp.add(t.Context(), types.UID(repository), []string{guid}, now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	knows := func(repository, guid string) bool {
		t.Helper()
		known, err := e.source.givenUp.of(t.Context(), types.UID(repository))
		if err != nil || len(known) > maxGivenUp {
			t.Fatalf("%d, %v", len(known), err)
		}
		_, found := known[endOf(guid)]
		return found
	}
	for n := range maxGivenUp + 1 {
		add("uid-0", fmt.Sprint("guid-", n))
	}
	if knows("uid-0", "guid-0") || !knows("uid-0", "guid-1") || knows("uid-1", "guid-1") {
		t.Error("not the newest are remembered, or another Repository's")
	}
	cm, err := e.source.givenUp.store.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 300 { // as many Repositories as fill it
		cm.Data[fmt.Sprint(givenUpPrefix, "full-", n)] = cm.Data[givenUpPrefix+"uid-0"]
	}
	if _, err := e.source.givenUp.store.ConfigMaps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	add("uid-2", "guid")
	if knows("uid-2", "guid") {
		t.Error("there is no bound for all")
	}
	now = now.Add(redelivery.RememberedFor + time.Hour)
	add("uid-2", "guid")
	if cm, err := e.source.givenUp.store.Read(t.Context()); !knows("uid-2", "guid") || err != nil || len(cm.Data) != 2 {
		t.Errorf("%d are remembered, %v", len(cm.Data), err)
	}
}

// A user with a server of its own has another delivery given up at each read. The ConfigMap is
// written now and then, and what a later read stores is not reported twice.
func TestGivenUpDeliveriesAreStoredWithAFewWrites(t *testing.T) {
	e := newEnv(t)
	one := newWebhook(7)
	v := view{one, &target{repository: e.sync()}, e}
	for n := range 10 * maxGivenUp {
		if err := e.source.giveUp(t.Context(), v, []redelivery.Delivery{{GUID: fmt.Sprint(n)}}, "why"); err != nil {
			t.Fatal(err)
		}
		for len(e.events.Events) > 0 {
			<-e.events.Events
		}
	}
	writes := 0
	for _, a := range e.kube.Actions() {
		if a.GetVerb() == "update" {
			writes++
		}
	}
	if writes > writesAtOnce || len(one.unwritten) > maxGivenUp {
		t.Errorf("%d writes, %d are left", writes, len(one.unwritten))
	}
	e.clock.Step(time.Minute)
	if err := e.source.giveUp(t.Context(), v, nil, "why"); err != nil || len(one.unwritten) != 0 {
		t.Errorf("%d are left, %v", len(one.unwritten), err)
	}
}
