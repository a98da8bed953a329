// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

const system = "plumbline"

// fixture is an API server with one event, and a store that knows what it uses.
type fixture struct {
	*testing.T
	client *fake.Clientset
	used   *quota.Ledger
	store  *plans.Store
	limits quota.Limits
}

func newFixture(t *testing.T, event *v1alpha1.GitEvent) *fixture {
	w := &fixture{T: t, client: fake.NewSimpleClientset(event), limits: quota.Limits{Events: 100, Bytes: 1 << 30}}
	w.used = quota.New(func() quota.Limits { return w.limits }, clocktesting.NewFakePassiveClock(metav1.Now().Time), nil)
	w.used.Watched(event)
	api := w.client.PlumblineV1alpha1()
	w.store = &plans.Store{Events: api.GitEvents(system), Payloads: api.EventPayloads(system),
		Secrets: kubefake.NewSimpleClientset().CoreV1().Secrets(system),
		Memory:  memory.NewBudget(time.Now, func() {}, func(string, time.Duration) {}), Budget: w.used,
		Changed: func(string) {}, Rate: plans.NewRate()}
	return w
}

// pushed is an event that has its payload.
func pushed(body string) *v1alpha1.GitEvent {
	packed, err := blob.Pack([]byte(body))
	if err != nil {
		panic(err)
	}
	event := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{
		Namespace: system, Name: "push-1", UID: "1", ResourceVersion: "7",
	}, Payload: packed.Stream,
		Spec: v1alpha1.GitEventSpec{
			Payload: packed.Whole(), Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: "app"},
		}}
	quota.Annotate(event, types.NamespacedName{Namespace: "team", Name: "app"}, 100)
	return event
}

// cached is the event as an informer has it: without its payload.
func cached(event *v1alpha1.GitEvent) *v1alpha1.GitEvent {
	event = event.DeepCopy()
	event.Payload = nil
	return event
}

// manifest is a PipelineRun with so many bytes that do not compress.
func manifest(name string, noise int) plans.Manifest {
	data := make([]byte, noise)
	// documented never to fail
	_, _ = rand.NewChaCha8([32]byte([]byte(name + "                                ")[:32])).Read(data)
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"name": name, "annotations": map[string]string{"noise": base64.StdEncoding.EncodeToString(data)},
	}})
	if err != nil {
		panic(err)
	}
	return plans.Manifest{Name: name, JSON: text}
}

// calls are the calls so far, in order.
func (w *fixture) calls() (all []string) {
	for _, action := range w.client.Actions() {
		all = append(all, action.GetVerb()+" "+action.GetResource().Resource)
	}
	w.client.ClearActions()
	return all
}

func (w *fixture) fail(verb, resource string, err error) {
	w.client.PrependReactor(verb, resource,
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func (w *fixture) live() *v1alpha1.GitEvent {
	w.Helper()
	event, err := w.store.Events.Get(w.Context(), "push-1", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.client.ClearActions()
	return event
}
