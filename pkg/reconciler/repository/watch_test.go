// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// queue collects what is enqueued.
type queue []string

func (q *queue) add(key types.NamespacedName) { *q = append(*q, key.String()) }

func (q *queue) sorted() []string {
	slices.Sort(*q)
	return *q
}

func TestClaimWakesItsOwnerAndItsRivals(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &pacv1alpha1.Repository{}, 0, repositoryIndexers())
	for _, r := range []*pacv1alpha1.Repository{
		repo("two", "app", appURL), repo("three", "app", "https://github.com/ACME/app/"),
		repo("four", "app", "https://github.com/acme/other"), repo("five", "app", "not a url"),
		repo(systemNS, "pipelines-as-code", ""),
	} {
		if err := informer.GetIndexer().Add(r); err != nil {
			t.Fatal(err)
		}
	}
	claim := claimed(appURL, "one", "gone", nil)
	for name, obj := range map[string]any{
		"the claim itself":            claim,
		"a deletion that was missed":  cache.DeletedFinalStateUnknown{Key: "x", Obj: claim},
		"a claim whose owner is gone": claimed(appURL, "one", "gone", &metav1.Time{Time: start}),
	} {
		t.Run(name, func(t *testing.T) {
			var q queue
			watches{repositories: informer}.claimChanged(q.add)(obj)
			if diff := cmp.Diff([]string{"one/gone", "three/app", "two/app"}, q.sorted()); diff != "" {
				t.Errorf("enqueued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventWakesItsRepositoryWhenItsProblemChanges(t *testing.T) {
	quiet := waiting("a")
	stuck := waiting("a", operatorWait("NoAccess", 0))
	retried := stuck.DeepCopy()
	retried.Status.Waits[0].NotBefore = &metav1.Time{Time: start.Add(time.Hour)}
	retried.ResourceVersion = "2"
	for name, test := range map[string]struct {
		call func(cache.ResourceEventHandler)
		want []string
	}{
		"an event that waits for nobody is new": {func(h cache.ResourceEventHandler) { h.OnAdd(quiet, false) }, nil},
		"an event that waits is new": {
			func(h cache.ResourceEventHandler) { h.OnAdd(stuck, true) }, []string{"one/app"},
		},
		"an event gets stuck": {
			func(h cache.ResourceEventHandler) { h.OnUpdate(quiet, stuck) }, []string{"one/app"},
		},
		"a stuck event is tried again and stays so": {
			func(h cache.ResourceEventHandler) { h.OnUpdate(stuck, retried) }, nil,
		},
		"a stuck event goes on": {
			func(h cache.ResourceEventHandler) { h.OnUpdate(stuck, quiet) }, []string{"one/app"},
		},
		"a stuck event settles and leaves the watch": {
			func(h cache.ResourceEventHandler) { h.OnDelete(stuck) }, []string{"one/app"},
		},
		"its deletion was missed": {func(h cache.ResourceEventHandler) {
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "plumbline/a", Obj: stuck})
		}, []string{"one/app"}},
		"an event that waited for nobody settles": {func(h cache.ResourceEventHandler) { h.OnDelete(quiet) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var q queue
			test.call(eventHandler(q.add, func(types.NamespacedName) bool { return false }))
			if diff := cmp.Diff(test.want, []string(q)); diff != "" {
				t.Errorf("enqueued (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPromotionEnqueuesRepositoriesAndOwnersOfClaims(t *testing.T) {
	repositories := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	claims := cache.NewIndexer(cache.MetaNamespaceKeyFunc, claimIndexers())
	for indexer, obj := range map[cache.Indexer]any{
		repositories: repo("one", "app", appURL), claims: claimed(appURL, "gone", "app", nil),
	} {
		if err := indexer.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	var q queue
	enqueue := func(_ pkgreconciler.Bucket, key types.NamespacedName) { q.add(key) }
	if err := promote(repositories, claims)(pkgreconciler.UniversalBucket(), enqueue); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gone/app", "one/app"}, q.sorted()); diff != "" {
		t.Errorf("enqueued (-want +got):\n%s", diff)
	}
}

func TestNewestProblemDoesNotDependOnTheOrder(t *testing.T) {
	a, b := waiting("a", operatorWait("A", 0)), waiting("b", operatorWait("B", 0))
	if !sameProblem(newest(a, b), newest(b, a)) {
		t.Error("the order of the events decides which problem is reported")
	}
	if !sameProblem(newest(), newest((*v1alpha1.GitEvent)(nil))) || sameProblem(newest(a), nil) {
		t.Error("no event and no problem are not the same")
	}
}

// The cache has what a status is computed from and compared with.
func TestCacheTrimsRepositories(t *testing.T) {
	r := repo("one", "app", appURL)
	r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	r.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b"}
	r.By(systemNS).MarkTrue(urlCondition, reasonOwned, "owned")
	want := r.DeepCopy()
	want.ManagedFields, want.Annotations = nil, map[string]string{"a": "b"}
	kept, err := trim(r)
	if diff := cmp.Diff(want, kept); err != nil || diff != "" {
		t.Errorf("%v (-want +kept):\n%s", err, diff)
	}
}

func TestIndexTellsNamesOfOneShardApart(t *testing.T) {
	beside := func(name string, of func(n int) string) string {
		for n := 0; ; n++ {
			if other := of(n); other != name && shard(other) == shard(name) {
				return fmt.Sprint(n)
			}
		}
	}
	url := appURL + beside(claimName(appURL), func(n int) string { return claimName(appURL + fmt.Sprint(n)) })
	owner := types.NamespacedName{Namespace: "one", Name: "app"}
	name := "app" + beside(owner.String(), func(n int) string { return "one/app" + fmt.Sprint(n) })
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", url), claimed(appURL, "one", "app", nil),
		claimed(url, "one", name, nil))
	w.catchUp()
	if named := rivals(w.r.repositories)(claimName(appURL)); len(named) != 1 || named[0] != owner {
		t.Errorf("%v name the URL, want %s", named, owner)
	}
	if others := w.r.others(owner, "https://github.com/acme/former"); len(others) != 1 || others[0].Spec.URL != appURL {
		t.Errorf("%d claims are taken for those of %s", len(others), owner)
	}
}
