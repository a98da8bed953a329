// SPDX-License-Identifier: Apache-2.0

// Package gitevents watches the GitEvents of one installation that still need a controller.
package gitevents

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/informers/externalversions"
	informers "github.com/plumbline-ci/plumbline/pkg/client/informers/externalversions/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
)

// The indexes of the unsettled events: by the name of their Repository, and by its Origin.
const (
	byRepository = "repository"
	byOrigin     = "origin"
)

// Watch is one informer, shared by the controllers of a process. It neither watches nor stores
// settled events, which are most of them. Of unsettled events it stores what Trim returns: an event
// is read live before it is acted on.
type Watch struct {
	namespace string
	once      sync.Once
	informer  informers.GitEventInformer
	whole     atomic.Pointer[func(*v1alpha1.GitEvent)]
}

// New returns the watch of a namespace. It lists nothing before Start.
func New(namespace string) *Watch {
	return &Watch{namespace: namespace}
}

// Informer returns the informer. The first call creates it with the client in ctx. Its objects are
// trimmed, also those that handlers get.
func (w *Watch) Informer(ctx context.Context) informers.GitEventInformer {
	w.once.Do(func() {
		factory := externalversions.NewSharedInformerFactoryWithOptions(plumblineclient.Get(ctx),
			controller.GetResyncPeriod(ctx), externalversions.WithNamespace(w.namespace),
			externalversions.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = v1alpha1.OpenEvents }),
			externalversions.WithTransform(w.trim))
		w.informer = factory.Plumbline().V1alpha1().GitEvents()
		index := cache.Indexers{byRepository: func(obj any) ([]string, error) {
			event, ok := obj.(*v1alpha1.GitEvent)
			if !ok {
				return nil, nil
			}
			return []string{event.Spec.Repository.Namespace + "/" + event.Spec.Repository.Name}, nil
		}, byOrigin: func(obj any) ([]string, error) {
			event, ok := obj.(*v1alpha1.GitEvent)
			if !ok {
				return nil, nil
			}
			return []string{event.Spec.Repository.Origin()}, nil
		}}
		if err := w.informer.Informer().AddIndexers(index); err != nil {
			panic(fmt.Sprintf("adding an index to an informer that has not started: %v", err))
		}
	})
	return w.informer
}

// BeforeTrim sets a function that gets each event before it is trimmed and cached. The function
// must not store or change the event: the cache may share parts of it.
func (w *Watch) BeforeTrim(see func(*v1alpha1.GitEvent)) { w.whole.Store(&see) }

// trim is Trim for an informer, which also passes objects whose deletion it has missed.
func (w *Watch) trim(obj any) (any, error) {
	event, ok := obj.(*v1alpha1.GitEvent)
	if !ok {
		return obj, nil
	}
	// client-go trims the objects of a streamed list twice. An event that is not trimmed yet has a
	// provider.
	if see := w.whole.Load(); see != nil && event.Spec.Provider != "" {
		(*see)(event)
	}
	return Trim(event), nil
}

// Start runs the informer until ctx is done, and waits for its first list. Each controller may call
// it.
func (w *Watch) Start(ctx context.Context) error {
	informer := w.Informer(ctx).Informer()
	if err := controller.StartInformers(ctx.Done(), informer); err != nil {
		return fmt.Errorf("listing open GitEvents: %w", err)
	}
	return nil
}

// Of returns the unsettled events of a Repository, trimmed and in no order; none before the first
// call of Informer. They are shared: do not change them.
func (w *Watch) Of(namespace, name string) []*v1alpha1.GitEvent {
	return w.by(byRepository, namespace+"/"+name)
}

// From returns the unsettled events of an Origin (RepositoryReference), as Of does: also those of
// Repositories that are gone.
func (w *Watch) From(origin string) []*v1alpha1.GitEvent { return w.by(byOrigin, origin) }

func (w *Watch) by(index, value string) []*v1alpha1.GitEvent {
	if w.informer == nil {
		return nil
	}
	objs, err := w.informer.Informer().GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil
	}
	events := make([]*v1alpha1.GitEvent, 0, len(objs))
	for _, obj := range objs {
		if event, ok := obj.(*v1alpha1.GitEvent); ok {
			events = append(events, event)
		}
	}
	return events
}
