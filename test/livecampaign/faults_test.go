// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// output is what a campaign prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func newTest(out *output, kube *fake.Clientset, faults ...string) *Campaign {
	return newCampaign(Options{
		Canary: types.NamespacedName{Namespace: "canary", Name: "app"}, System: "plumbline", Faults: faults,
		Hold: time.Hour, Deadline: 3 * time.Second, Out: out,
	}, clients{kube: kube})
}

// pod is one of a Deployment of config/.
func pod(deployment, name string, age time.Duration, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "plumbline", Name: name, UID: types.UID(name),
			Labels:            map[string]string{"app.kubernetes.io/name": deployment},
			CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": name}},
		},
	}
}

// installed has two ready pods of each Deployment. An evicted pod is replaced, if pods recover.
func installed(comesBack bool) (*fake.Clientset, *[]string) {
	kube, evicted := fake.NewClientset(), &[]string{}
	for _, name := range deployments() {
		for _, object := range []runtime.Object{deployment(name, 2), pod(name, name+"-old", time.Hour, corev1.ConditionTrue),
			pod(name, name+"-new", time.Minute, corev1.ConditionTrue)} {
			_ = kube.Tracker().Add(object)
		}
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	kube.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		eviction, is := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		if !is {
			return false, nil, nil
		}
		*evicted = append(*evicted, eviction.Name)
		if !comesBack {
			return true, nil, nil
		}
		_ = kube.Tracker().Delete(resource, "plumbline", eviction.Name)
		name := strings.TrimSuffix(eviction.Name, "-old")
		return true, nil, kube.Tracker().Add(pod(name, name+"-another", 0, corev1.ConditionTrue))
	})
	return kube, evicted
}

// One pod of each Deployment is evicted, the oldest first, the second when the first one's
// Deployment is whole again.
func TestPodsAreEvictedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	kube, evicted := installed(true)
	c := newTest(&output{}, kube, "pods")
	if _, err := c.faults[0].prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.faults[0].inject(t.Context()); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(*evicted); got != "[plumbline-receiver-old plumbline-controller-old]" {
		t.Errorf("evicted: %s", got)
	}
}

// A pod that does not come back is a violation, and no other pod is evicted then.
func TestAPodThatDoesNotComeBackIsAViolation(t *testing.T) {
	t.Parallel()
	kube, evicted := installed(false)
	err := newTest(&output{}, kube, "pods").faults[0].inject(t.Context())
	if broken := (Violation{}); !errors.As(err, &broken) || broken.Promise != "pods" {
		t.Errorf("it ends with %v, want a violation", err)
	}
	if len(*evicted) != 1 {
		t.Errorf("evicted: %v, want one", *evicted)
	}
}

// After a fault that does not recover, no other fault is made: a receiver that is replaced while
// the copies are missing is not ready.
func TestNothingIsDisturbedWhenSomethingStaysAway(t *testing.T) {
	t.Parallel()
	kube, evicted := installed(true)
	c := newTest(&output{}, kube, "pods")
	c.faults, c.Faults = append([]fault{staysAway{}}, c.faults...), append([]string{"secrets"}, c.Faults...)
	c.Pause = time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c.disturb(ctx, time.Now().Add(time.Hour))
	if ctx.Err() != nil || len(*evicted) > 0 || c.broken != 1 {
		t.Errorf("evicted: %v; %d violations; %v", *evicted, c.broken, ctx.Err())
	}
}

type staysAway struct{}

func (staysAway) prepare(context.Context) (string, error) { return "", nil }
func (staysAway) inject(context.Context) error            { return Violation{Promise: "secrets"} }

// A pod is evicted only when there are two at least and all are ready.
func TestAPodIsEvictedWhenAllAreReadyOnly(t *testing.T) {
	t.Parallel()
	for name, objects := range map[string][]runtime.Object{
		"one replica": {
			deployment("plumbline-receiver", 1), pod("plumbline-receiver", "a", 0, corev1.ConditionTrue),
		},
		"one is not ready": {deployment("plumbline-receiver", 2),
			pod("plumbline-receiver", "a", 0, corev1.ConditionTrue), pod("plumbline-receiver", "b", 0, corev1.ConditionFalse)},
		"one is missing": {
			deployment("plumbline-receiver", 2), pod("plumbline-receiver", "a", 0, corev1.ConditionTrue),
		},
		"one is too many": {
			deployment("plumbline-receiver", 2), pod("plumbline-receiver", "a", 0, corev1.ConditionTrue),
			pod("plumbline-receiver", "b", 0, corev1.ConditionTrue), pod("plumbline-receiver", "c", 0, corev1.ConditionTrue),
		},
		"there is no such Deployment": nil,
	} {
		kube := fake.NewClientset(objects...)
		c := newTest(&output{}, kube, "pods")
		if _, err := c.faults[0].prepare(t.Context()); err == nil {
			t.Errorf("%s: it is planned", name)
		}
		if err := c.faults[0].inject(t.Context()); err == nil {
			t.Errorf("%s: it is done", name)
		}
		for _, action := range kube.Actions() {
			if action.GetVerb() != "get" && action.GetVerb() != "list" {
				t.Errorf("%s: %s %s", name, action.GetVerb(), action.GetResource().Resource)
			}
		}
	}
}

// The Secret with the copies is deleted, and waited for. One that does not come back with the
// canary's copy is a violation.
func TestADeletedCopyHasToComeBack(t *testing.T) {
	t.Parallel()
	const comesBack, staysAway, stays = "it comes back", "it stays away", "a finalizer keeps it"
	for _, name := range []string{comesBack, staysAway, stays} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kube := fake.NewClientset()
			s := &copies{Campaign: newTest(&output{}, kube),
				id: webhooksecret.ID(pacv1alpha1.SecretKey{Namespace: "plumbline", Name: appSecret, Key: webhooksecret.AppKey})}
			made := func(uid types.UID) *corev1.Secret {
				shard := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: s.name(), UID: uid,
						Annotations: map[string]string{webhooksecret.CompleteAnnotation: "true"}},
					Data: map[string][]byte{},
				}
				webhooksecret.Put(shard.Data, s.id, webhooksecret.Value{Current: []byte("x")})
				return shard
			}
			_ = kube.Tracker().Add(made("first"))
			kube.PrependReactor("delete", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
				if name == comesBack {
					return true, nil, kube.Tracker().Update(secrets, made("second"), "plumbline")
				}
				return name == stays, nil, nil
			})
			err := s.inject(t.Context())
			if broken := (Violation{}); errors.As(err, &broken) != (name != comesBack) || name == comesBack && err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
