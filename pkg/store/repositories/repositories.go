// SPDX-License-Identifier: Apache-2.0

// Package repositories hides Repositories that this installation does not serve, because the
// setting serve-namespaces does not name their namespace (docs/adr/0056).
//
// Code that starts something new for a Repository reads it through this package. Code that finishes
// events that were recorded earlier reads the whole cache.
package repositories

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// Settings returns the current configuration.
type Settings interface{ Load() *config.Config }

// Repositories returns a view of a cache of Repositories in which those of other namespaces do not
// exist. The view follows the settings: a caller that stores what it has read reads it again when
// they change.
func Repositories(all cache.Indexer, settings Settings) cache.Indexer {
	return view{all, settings}
}

// Lister returns the lister of that view.
func Lister(all cache.Indexer, settings Settings) listers.RepositoryLister {
	return listers.NewRepositoryLister(Repositories(all, settings))
}

// Read is a function that reads a Repository.
type Read = func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error)

// Reader returns a function that reads the Repositories that are served: the others do not exist.
// It returns an error while the setting cannot be read.
func Reader(read Read, settings Settings) Read {
	return func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
		switch namespaces := settings.Load().Namespaces; {
		case namespaces.Serve(namespace):
			return read(ctx, namespace, name)
		case namespaces.Broken != "":
			return nil, apierrors.NewServiceUnavailable(
				"serve-namespaces in Plumbline's ConfigMap cannot be read: " + namespaces.Broken,
			)
		}
		return nil, apierrors.NewNotFound(pacv1alpha1.Resource("repositories"), name)
	}
}

type view struct {
	cache.Indexer
	settings Settings
}

func (v view) hidden(object any) bool {
	repository, ok := object.(*pacv1alpha1.Repository)
	return !ok || !v.settings.Load().Namespaces.Serve(repository.Namespace)
}

func (v view) List() []any { return slices.DeleteFunc(v.Indexer.List(), v.hidden) }

func (v view) GetByKey(key string) (any, bool, error) {
	object, found, err := v.Indexer.GetByKey(key)
	if err != nil || !found || v.hidden(object) {
		return nil, false, err
	}
	return object, true, nil
}

func (v view) Get(object any) (any, bool, error) {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return nil, false, err
	}
	return v.GetByKey(key)
}

func (v view) ByIndex(name, value string) ([]any, error) {
	objects, err := v.Indexer.ByIndex(name, value)
	return slices.DeleteFunc(objects, v.hidden), err
}

func (v view) Index(name string, object any) ([]any, error) {
	objects, err := v.Indexer.Index(name, object)
	return slices.DeleteFunc(objects, v.hidden), err
}

func (v view) ListKeys() []string {
	objects := v.List()
	keys := make([]string, 0, len(objects))
	for _, object := range objects {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}
