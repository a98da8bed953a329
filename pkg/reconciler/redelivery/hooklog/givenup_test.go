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
)

// failWrites makes some writes of the ConfigMap fail.
func (w *world) failWrites(n int, err error) {
	w.kube.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if n == 0 || err == nil {
			return false, nil, nil
		}
		n--
		return true, nil, err
	})
}

// What is given up is told once, whatever processes come later, and also when that could not be
// written down at first. GitLab's log lists it for a week.
func TestWhatIsGivenUpIsRemembered(t *testing.T) {
	for name, err := range map[string]error{
		"":                 nil,
		" after conflicts": apierrors.NewConflict(corev1.Resource("configmaps"), asks.Ledger, nil),
		" after an outage": apierrors.NewServiceUnavailable("etcd is away"),
	} {
		t.Run("refused"+name, func(t *testing.T) {
			w := newWorld(t)
			w.failWrites(5, err)
			w.missed("bad")
			w.receive = refuses("bad")
			for i := range 60 {
				w.deliver(fmt.Sprint("good", i))
				w.run(10 * time.Minute)
			}
			w.wantRemembered()
		})
		t.Run("gone"+name, func(t *testing.T) {
			w := newWorld(t)
			w.failWrites(5, err)
			w.missed("bad")
			w.gone = true
			w.run(time.Hour)
			w.wantRemembered()
		})
	}
}

// wantRemembered starts another process, and wants what was told so far to be told once.
func (w *world) wantRemembered() {
	w.Helper()
	w.start()
	w.run(time.Hour)
	w.start()
	w.run(time.Hour)
	if n := len(w.events.Events); n != 1 {
		w.Errorf("told %d times", n)
	}
	cm, err := w.process.givenUp.read(w.Context())
	if err != nil || cm.Data["github.json"] != "theirs" {
		w.Errorf("the ConfigMap has %q, %v", cm.Data, err)
	}
}

// Without the ConfigMap it is told nevertheless.
func TestGivenUpWithoutTheConfigMap(t *testing.T) {
	w := newWorld(t)
	if err := w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("configmaps"), system, asks.Ledger); err != nil {
		t.Fatal(err)
	}
	w.missed("a")
	w.gone = true
	w.run(time.Hour)
	if n := len(w.events.Events); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// What is remembered is bounded: of each Repository, of all, and in time.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	w := newWorld(t)
	now := w.clock.Now()
	add := func(repository, guid string) {
		t.Helper()
		if err := w.process.givenUp.add(t.Context(), types.UID(repository), []string{guid}, now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	knows := func(repository, guid string) bool {
		t.Helper()
		known, err := w.process.givenUp.of(t.Context(), types.UID(repository))
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
	cm, err := w.process.givenUp.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 300 { // as many Repositories as fill it
		cm.Data[fmt.Sprint(givenUpPrefix, "full-", n)] = cm.Data[givenUpPrefix+"uid-0"]
	}
	if _, err := w.process.givenUp.configMaps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	add("uid-2", "guid")
	if knows("uid-2", "guid") {
		t.Error("there is no bound for all")
	}
	now = now.Add(givenUpFor + time.Hour)
	add("uid-2", "guid")
	if cm, err := w.process.givenUp.read(t.Context()); !knows("uid-2", "guid") || err != nil || len(cm.Data) != 2 {
		t.Errorf("%d are remembered, %v", len(cm.Data), err)
	}
}

// A tenant with a server of its own has something else given up at each look. That has the
// ConfigMap written now and then, and what is left for a later look is not told again.
func TestWhatIsGivenUpIsWrittenSeldom(t *testing.T) {
	w := newWorld(t)
	one := newLog(7)
	v := view{&one, &target{repository: w.sync()}, w}
	for n := range 10 * maxGivenUp {
		if err := w.process.giveUp(t.Context(), v, []missed{{guid: fmt.Sprint(n)}}, "why"); err != nil {
			t.Fatal(err)
		}
		for len(w.events.Events) > 0 {
			<-w.events.Events
		}
	}
	writes := 0
	for _, a := range w.kube.Actions() {
		if a.GetVerb() == "update" {
			writes++
		}
	}
	if writes > writesAtOnce || len(one.unwritten) > maxGivenUp {
		t.Errorf("%d writes, %d are left", writes, len(one.unwritten))
	}
	w.clock.Step(time.Minute)
	if err := w.process.giveUp(t.Context(), v, nil, "why"); err != nil || len(one.unwritten) != 0 {
		t.Errorf("%d are left, %v", len(one.unwritten), err)
	}
}
