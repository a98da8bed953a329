// SPDX-License-Identifier: Apache-2.0

package repositories

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	logtesting "knative.dev/pkg/logging/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// served is a configuration with a value of serve-namespaces.
func served(t *testing.T, value string) *config.Store {
	t.Helper()
	settings := config.NewStore(logtesting.TestLogger(t))
	settings.OnConfigChanged(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: config.Name},
		Data:       map[string]string{"serve-namespaces": value},
	})
	return settings
}

func repository(namespace, name string) *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// However the cache is read, a Repository of another namespace does not exist.
func TestEveryReadHidesUnservedRepositories(t *testing.T) {
	const byNamespace = cache.NamespaceIndex
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byNamespace: cache.MetaNamespaceIndexFunc})
	for _, namespace := range []string{"team-a", "team-b"} {
		if err := all.Add(repository(namespace, "app")); err != nil {
			t.Fatal(err)
		}
	}
	for value, want := range map[string]string{"": "team-a team-b", "team-a": "team-a", "!team-a": "team-b",
		"team-c": ""} {
		settings := served(t, value)
		view, found := Repositories(all, settings), map[string][]string{}
		for _, namespace := range []string{"team-a", "team-b"} {
			note := func(read string, there bool) {
				if there {
					found[read] = append(found[read], namespace)
				} else if found[read] == nil {
					found[read] = []string{}
				}
			}
			_, there, _ := view.GetByKey(namespace + "/app")
			note("GetByKey", there)
			_, there, _ = view.Get(repository(namespace, "app"))
			note("Get", there)
			some, _ := view.ByIndex(byNamespace, namespace)
			note("ByIndex", len(some) > 0)
			some, _ = view.Index(byNamespace, repository(namespace, "app"))
			note("Index", len(some) > 0)
			_, err := Lister(all, settings).Repositories(namespace).Get("app")
			note("Lister.Get", err == nil)
			listed, _ := Lister(all, settings).Repositories(namespace).List(labels.Everything())
			note("Lister.List", len(listed) > 0)
		}
		for read, namespaces := range found {
			if diff := cmp.Diff(want, strings.Join(namespaces, " ")); diff != "" {
				t.Errorf("%q: %s: %s", value, read, diff)
			}
		}
		if n := len(strings.Fields(want)); len(view.List()) != n || len(view.ListKeys()) != n {
			t.Errorf("%q: List returns %d, ListKeys %q, want %d", value, len(view.List()), view.ListKeys(), n)
		}
	}
	if len(all.List()) != 2 {
		t.Error("the cache itself has changed")
	}
}

func TestReaderReadsServedRepositoriesOnly(t *testing.T) {
	asked := ""
	read := func(_ context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
		asked += namespace + " "
		return repository(namespace, name), nil
	}
	for value, is := range map[string]func(error) bool{
		"team-a": func(err error) bool { return err == nil }, "team-b": apierrors.IsNotFound,
		"team_a": apierrors.IsServiceUnavailable,
	} {
		if _, err := Reader(read, served(t, value))(t.Context(), "team-a", "app"); !is(err) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if asked != "team-a " {
		t.Errorf("read in %q", asked)
	}
}
