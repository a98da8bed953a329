// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	logtesting "knative.dev/pkg/logging/testing"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// caches are what the informers of one process fill.
type caches struct{ events, repositories, claims, runs cache.Indexer }

func newCaches() caches {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	return caches{
		events:       cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		repositories: cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		claims:       cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		runs:         cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
	}
}

func (c caches) open() deps.Open {
	of := func(namespace, name string) (events []*v1alpha1.GitEvent) {
		for _, obj := range c.events.List() {
			if event, ok := obj.(*v1alpha1.GitEvent); ok && event.Spec.Repository.Namespace == namespace &&
				event.Spec.Repository.Name == name {
				events = append(events, event)
			}
		}
		return events
	}
	from := func(origin string) (events []*v1alpha1.GitEvent) {
		for _, obj := range c.events.List() {
			if event, ok := obj.(*v1alpha1.GitEvent); ok && event.Spec.Repository.Origin() == origin {
				events = append(events, event)
			}
		}
		return events
	}
	return deps.Open{GitEventLister: listers.NewGitEventLister(c.events), Of: of, From: from}
}

// fill brings caches up to date with the cluster.
func (w *env) fill(c caches) {
	w.t.Helper()
	var events, runs []any
	for _, e := range w.events() {
		if !e.Settled() {
			events = append(events, gitevents.Trim(&e))
		}
	}
	watched, err := labels.Parse(pipelineruns.RunSelector(system))
	w.must(err)
	for _, run := range w.runs() {
		if watched.Matches(labels.Set(run.Labels)) {
			runs = append(runs, pipelineruns.TrimRun(&run))
		}
	}
	served := repository()
	if w.repository != nil {
		w.repository(served)
	}
	w.must(c.events.Replace(events, ""))
	w.must(c.runs.Replace(runs, ""))
	w.must(c.repositories.Replace([]any{served}, ""))
	var claims []any
	if known, err := w.own.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("repositoryclaims"), system,
		repositoryClaim().Name); err == nil {
		claims = append(claims, known)
	}
	w.must(c.claims.Replace(claims, ""))
}

// reconciler returns a new process, which remembers nothing of earlier ones.
func (w *env) reconciler() *Reconciler {
	c := newCaches()
	w.fill(c)
	return w.reconcilerWith(c)
}

func (w *env) reconcilerWith(c caches) *Reconciler {
	cluster := deps.Cluster{
		Plumbline: w.own.PlumblineV1alpha1(), PaC: w.own.PipelinesascodeV1alpha1(),
		Tekton: deps.Tekton{TektonV1Interface: w.tekton.TektonV1(), Metadata: runLister{w: w}},
		Kube:   deps.Kube{CoreV1Interface: w.kube.CoreV1(), Logs: w.kube.CoreV1()},
	}
	if w.logs != nil {
		cluster.Kube.Logs = w.logs
	}
	return w.newProcess(c, cluster, fmt.Sprint("process-", w.processes.Add(1)), func(event string, after time.Duration) {
		w.wakes = append(w.wakes, after)
		if w.woken != nil {
			w.woken(event, after)
		}
	})
}

// newProcess returns the reconciler of a process that leads. It reaches the API server through the
// clients of cluster.
func (w *env) newProcess(c caches, cluster deps.Cluster, identity string,
	wake func(string, time.Duration)) *Reconciler {
	cluster.Open, cluster.Repositories = c.open(), paclisters.NewRepositoryLister(c.repositories)
	cluster.Claims, cluster.Runs = listers.NewRepositoryClaimLister(c.claims), c.runs
	cluster.Recorder, cluster.Clock = record.NewFakeRecorder(1000), w.clock
	r := New(cluster, deps.Options{
		Namespace: system, Version: "test", AppSecret: "app", GlobalRepository: "pipelines-as-code", Identity: identity,
		Budget: w.used(c), Remote: web.New(web.Options{Proxy: noProxy}),
		Providers: map[string]provider.Provider{"fake": w.git.provider(), "github": w.git.provider()},
	}, deps.Process{Settings: w.store(), Wake: wake})
	_ = r.Promote(reconciler.UniversalBucket(), nil)
	return r
}

// used returns a ledger of the cached events.
func (w *env) used(c caches) *quota.Ledger {
	used := quota.New(func() quota.Limits { return w.store().Load().Open }, w.clock, nil)
	for _, event := range c.events.List() {
		used.Watched(event.(metav1.Object))
	}
	return used
}

// store returns the ConfigMap as it is now.
func (w *env) store() *config.Store {
	settings := config.NewStore(logtesting.TestLogger(w.t))
	settings.OnConfigChanged(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}, Data: w.settings,
	})
	return settings
}

// process returns the process that is alive, with current caches; a new one if the last was killed.
func (w *env) process() *Reconciler {
	if w.alive == nil {
		w.caches = newCaches()
		w.alive = w.reconcilerWith(w.caches)
	}
	w.fill(w.caches)
	// A test may have changed these since the process started; a real process is notified.
	w.alive.process.Settings, w.alive.store.Budget = w.store(), w.used(w.caches)
	w.alive.options.Providers["fake"] = w.git.provider()
	return w.alive
}

// kill ends the process: the next one remembers nothing.
func (w *env) kill() { w.alive = nil }

// reconcile runs one reconcile of the event and returns its error; killed tells that the process
// ended in it.
func (w *env) reconcile() (killed bool, err error) { return w.reconcileEvent("push-1") }

func (w *env) reconcileEvent(name string) (killed bool, err error) {
	done := make(chan struct{})
	killed, w.wakes = true, nil
	r := w.uncounted(w.process)
	taken := r.queue.InUse()
	go func() {
		defer close(done)
		err = r.Reconcile(context.Background(), system+"/"+name)
		killed = false
	}()
	<-done
	for share, now := range r.queue.InUse() { // fewer are taken than before if one was kept for this event
		if !killed && now > taken[share] {
			w.t.Errorf("the reconcile has ended; before it the slots taken were %v, and now %d of %s", taken, now, share)
		}
	}
	if killed || w.forgets {
		w.kill()
	}
	return killed, err
}
