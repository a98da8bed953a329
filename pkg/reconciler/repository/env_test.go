// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"testing"
	"time"

	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	logtesting "knative.dev/pkg/logging/testing"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

const (
	systemNS = "plumbline"
	appURL   = "https://github.com/acme/app"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// env is an API server, caches that follow it only on request, and a Reconciler between them.
type env struct {
	*testing.T
	client   *fake.Clientset
	recorder *record.FakeRecorder
	clock    *clocktesting.FakePassiveClock
	events   []*v1alpha1.GitEvent
	synced   bool
	wakes    []time.Duration // besides what reconciles returned
	budget   *quota.Ledger
	tekton   *tektonfake.Clientset
	crossed  []quota.Scope // that became full or free
	r        *Reconciler
}

func newEnv(t *testing.T, objects ...runtime.Object) *env {
	w := &env{
		T: t, client: fake.NewSimpleClientset(objects...), recorder: record.NewFakeRecorder(100),
		clock: clocktesting.NewFakePassiveClock(start), synced: true,
		tekton: tektonfake.NewSimpleClientset(),
	}
	w.budget = quota.New(func() quota.Limits { return quota.Limits{Events: 40, Bytes: 1 << 30} }, w.clock,
		func(s quota.Scope) { w.crossed = append(w.crossed, s) })
	w.r = &Reconciler{
		budget: w.budget,
		client: w.client, namespace: systemNS, recorder: w.recorder, clock: w.clock,
		tekton: w.tekton.TektonV1(), runs: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		global:       "pipelines-as-code",
		repositories: cache.NewIndexer(cache.MetaNamespaceKeyFunc, repositoryIndexers()),
		claims:       cache.NewIndexer(cache.MetaNamespaceKeyFunc, claimIndexers()),
		settings:     config.NewStore(logtesting.TestLogger(t)),
		openEvents:   func(string, string) []*v1alpha1.GitEvent { return trimmed(w.events) },
		eventsSynced: func() bool { return w.synced },
		retries:      backoff.New(),
		wake:         func(_ types.NamespacedName, after time.Duration) { w.wakes = append(w.wakes, after) },
	}
	w.r.rivals = w.r.thatAreServed(w.rivals)
	if err := w.r.Promote(pkgreconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// restart makes the process forget everything but its caches.
func (w *env) restart() {
	w.r.replaced, w.r.unseen, w.r.priorities, w.r.retries = replaced{}, unseen{}, priorities{}, backoff.New()
	w.r.recents = recents{}
}

// catchUp updates the caches.
func (w *env) catchUp() {
	w.Helper()
	list, err := w.client.PlumblineV1alpha1().RepositoryClaims(systemNS).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	all := make([]any, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	if err := w.r.claims.Replace(all, ""); err != nil {
		w.Fatal(err)
	}
	repositories, err := w.client.PipelinesascodeV1alpha1().Repositories("").List(context.Background(),
		metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	all = nil
	for i := range repositories.Items {
		all = append(all, &repositories.Items[i])
	}
	if err := w.r.repositories.Replace(all, ""); err != nil {
		w.Fatal(err)
	}
}

// rivals returns what an index of Repositories would find.
func (w *env) rivals(claim string) []types.NamespacedName {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, repositoryIndexers())
	list, err := w.client.PipelinesascodeV1alpha1().Repositories("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		if err := indexer.Add(&list.Items[i]); err != nil {
			w.Fatal(err)
		}
	}
	return rivals(indexer)(claim)
}

// configure changes the ConfigMap.
func (w *env) configure(data map[string]string) {
	store := config.NewStore(logtesting.TestLogger(w.T))
	store.OnConfigChanged(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNS, Name: config.Name}, Data: data,
	})
	w.r.settings = store
}

// reconcile reconciles keys in order, each with current caches, and fails on errors that are not
// timers.
func (w *env) reconcile(keys ...string) time.Duration {
	w.Helper()
	var after time.Duration
	for _, key := range keys {
		w.catchUp()
		err := w.r.Reconcile(context.Background(), key)
		timer, wait := controller.IsRequeueKey(err)
		if err != nil && !timer {
			w.Fatalf("reconciling %s: %v", key, err)
		}
		after = wait
	}
	return after
}

func (w *env) advance(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func (w *env) repository(namespace, name string) *pacv1alpha1.Repository {
	w.Helper()
	r, err := w.client.PipelinesascodeV1alpha1().Repositories(namespace).Get(context.Background(), name,
		metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *env) setURL(namespace, name, url string) {
	w.Helper()
	r := w.repository(namespace, name)
	r.Spec.URL, r.Generation = url, r.Generation+1
	if _, err := w.client.PipelinesascodeV1alpha1().Repositories(namespace).Update(context.Background(), r,
		metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *env) create(r *pacv1alpha1.Repository) {
	w.Helper()
	if _, err := w.client.PipelinesascodeV1alpha1().Repositories(r.Namespace).Create(context.Background(), r,
		metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *env) delete(namespace, name string) {
	w.Helper()
	if err := w.client.PipelinesascodeV1alpha1().Repositories(namespace).Delete(context.Background(), name,
		metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// claimOf returns the claim of a URL; nil if there is none.
func (w *env) claimOf(url string) *v1alpha1.RepositoryClaim {
	w.Helper()
	claim, err := w.client.PlumblineV1alpha1().RepositoryClaims(systemNS).Get(context.Background(),
		v1alpha1.ClaimName(url), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return claim
}

func (w *env) wantOwner(url, owner string) {
	w.Helper()
	claim := w.claimOf(url)
	if claim == nil || ownerOf(claim).String() != owner {
		w.Errorf("claim of %s is %+v, want it to be %s's", url, claim, owner)
	}
}

func (w *env) wantCondition(namespace, name string, condition apis.ConditionType, want string) {
	w.Helper()
	c := w.repository(namespace, name).Status.GetCondition(condition)
	if c == nil {
		w.Errorf("%s/%s has no condition %s, want %s", namespace, name, condition, want)
		return
	}
	if got := string(c.Status) + " " + c.Reason; got != want {
		w.Errorf("%s/%s: %s is %q (%s), want %q", namespace, name, condition, got, c.Message, want)
	}
}

// writes returns verb and resource of every write since the last time.
func (w *env) writes() []string {
	var all []string
	for _, action := range w.client.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" && verb != "watch" {
			resource := action.GetResource().Resource
			if sub := action.GetSubresource(); sub != "" {
				resource += "/" + sub
			}
			all = append(all, verb+" "+resource)
		}
	}
	w.client.ClearActions()
	return all
}

// failOnce fails the next call of verb on resource with err.
func (w *env) failOnce(verb, resource string, err error) {
	done := false
	w.client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		if done {
			return false, nil, nil
		}
		done = true
		return true, nil, err
	})
}

// published returns the Kubernetes Events since the last call.
func (w *env) published() []string {
	var all []string
	for len(w.recorder.Events) > 0 {
		all = append(all, <-w.recorder.Events)
	}
	return all
}

const (
	urlCondition  = pacv1alpha1.RepositoryURL
	credentials   = pacv1alpha1.RepositoryCredentials
	ready         = pacv1alpha1.RepositoryReady
	warning       = corev1.EventTypeWarning
	trueOwned     = "True " + reasonOwned
	falseClaimed  = "False " + reasonClaimed
	trueNoProblem = "True " + reasonNoProblem
)

// trimmed returns the events as the cache has them.
func trimmed(events []*v1alpha1.GitEvent) []*v1alpha1.GitEvent {
	kept := make([]*v1alpha1.GitEvent, 0, len(events))
	for _, event := range events {
		kept = append(kept, gitevents.Trim(event))
	}
	return kept
}
