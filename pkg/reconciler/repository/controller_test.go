// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"slices"
	"testing"
	"time"

	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	pipelineclient "github.com/tektoncd/pipeline/pkg/client/injection/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	rtesting "knative.dev/pkg/reconciler/testing"
	"knative.dev/pkg/system"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	fakeclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client/fake"
	fakeinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository/fake"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// noEvents is an informer without events.
type noEvents struct{}

func (noEvents) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return noEvents{}, nil
}
func (noEvents) HasSynced() bool { return true }

// The controller is built as sharedmain builds it. Deletions, claims and the end of a claim's day
// wake the right Repositories.
func TestControllerHandsOverAURL(t *testing.T) {
	t.Setenv(system.NamespaceEnvKey, systemNS)
	ctx, cancel, informers := rtesting.SetupFakeContextWithCancel(t)
	defer cancel()
	ctx = context.WithValue(ctx, pipelineclient.Key{}, tektonfake.NewSimpleClientset())
	clock := clocktesting.NewFakePassiveClock(start)
	cache := fakeinformer.Get(ctx).Lister()
	impl := NewController(Options{
		OpenEvents: func(string, string) []*v1alpha1.GitEvent { return nil }, EventInformer: noEvents{}, Clock: clock,
		Claims: claim.NewClaims(systemNS),
	})(ctx, configmap.NewStaticWatcher(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNS, Name: config.Name},
	}))
	if err := controller.StartInformers(ctx.Done(), informers...); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- impl.Run(ctx) }()
	w := &env{T: t, client: fakeclient.Get(ctx)}
	// The fake API server forgets what happens between a list and its watch.
	w.eventually("both watches are open",
		func() bool { return w.watched("repositories") && w.watched("repositoryclaims") })

	w.create(repo("one", "app", appURL))
	w.eventually("one owns the URL", func() bool { return w.owner(appURL) == "one/app" && w.url("one") == "True" })
	w.create(repo("two", "app", appURL))
	w.eventually("two loses", func() bool { return w.url("two") == "False" })
	w.eventually("the cache can tell a claim's end to two",
		func() bool { _, err := cache.Repositories("two").Get("app"); return err == nil })

	w.delete("one", "app")
	w.eventually("the claim is released",
		func() bool { c := w.claimOf(appURL); return c != nil && c.Status.ReleasedAt != nil })
	clock.SetTime(start.Add(claimKept))
	impl.EnqueueKey(ownerOf(claimed(appURL, "one", "app", nil))) // stands in for the timer, which is real time
	w.eventually("two takes the URL over", func() bool { return w.owner(appURL) == "two/app" && w.url("two") == "True" })

	if watchesClaimsOutside(w.client) {
		t.Error("claims are watched in all namespaces; the Role allows Plumbline's own only")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (w *env) watched(resource string) bool {
	return slices.ContainsFunc(w.client.Actions(),
		func(a clienttesting.Action) bool { return a.Matches("watch", resource) })
}

func watchesClaimsOutside(client *fake.Clientset) bool {
	return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool {
		return a.GetResource().Resource == "repositoryclaims" && a.GetNamespace() != systemNS
	})
}

func (w *env) url(namespace string) string {
	r, err := w.client.PipelinesascodeV1alpha1().Repositories(namespace).Get(context.Background(), "app",
		metav1.GetOptions{})
	if err != nil || r.Status.GetCondition(urlCondition) == nil {
		return ""
	}
	return string(r.Status.GetCondition(urlCondition).Status)
}

func (w *env) owner(url string) string {
	claim, err := w.client.PlumblineV1alpha1().RepositoryClaims(systemNS).Get(context.Background(),
		v1alpha1.ClaimName(url), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err != nil {
		return ""
	}
	return ownerOf(claim).String()
}

// eventually polls up to a deadline.
func (w *env) eventually(what string, ok func() bool) {
	w.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			w.Fatalf("not within 10 s: %s", what)
		case <-tick.C:
		}
	}
}
