// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// unserved is a 404 because the kind is not served at the moment, which says nothing of the object
// (K19).
func unserved() error {
	return apierrors.NewGenericServerResponse(404, "get", corev1.Resource("repositories"), "", "404 page not found", 0,
		true)
}

// K20: a Repository is gone only if a live read says so for certain.
func TestRepository(t *testing.T) {
	t.Parallel()
	at := func(url string) func(*pacv1alpha1.Repository) {
		return func(r *pacv1alpha1.Repository) { r.Spec.URL = url }
	}
	other := at("https://git.example/acme/other")
	delete := func(r *fixture) {
		r.must(r.pac.Tracker().Delete(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), tenant, "app"))
	}
	cached := func(r *fixture, change func(*pacv1alpha1.Repository)) {
		own := repository()
		change(own)
		r.must(r.cache.Update(own))
	}
	for name, test := range map[string]struct {
		given func(*fixture)
		found bool
		err   string
		reads int
	}{
		"it is cached": {func(*fixture) {}, true, "", 0},
		"its URL is spelt otherwise": {
			func(r *fixture) { r.provide(at("https://git.example/Acme/App.git/")) }, true, "", 0,
		},
		"the cache lags behind a create":    {func(r *fixture) { r.must(r.cache.Delete(repository())) }, true, "", 1},
		"the cache lags behind another URL": {func(r *fixture) { cached(r, other) }, true, "", 1},
		"it names another URL":              {func(r *fixture) { r.provide(other) }, false, "", 1},
		"it was deleted": {
			func(r *fixture) { r.must(r.cache.Delete(repository())); delete(r) }, false, "", 1,
		},
		"its deletion is not in the cache yet": {func(r *fixture) { delete(r) }, true, "", 0},
		"the kind is not served": {func(r *fixture) {
			cached(r, other)
			failing(&r.pac.Fake, "repositories", unserved())
		}, false, "reading Repository team/app", 1},
		"it cannot be read": {func(r *fixture) {
			cached(r, other)
			failing(&r.pac.Fake, "repositories", apierrors.NewServiceUnavailable("down"))
		}, false, "reading Repository team/app: down", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			test.given(r)
			found, err := r.begin("e", "own", "git.example").Repository(t.Context())
			if (found != nil) != test.found || (err != nil) != (test.err != "") ||
				err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("found %v, error %v", found, err)
			}
			if got := count(&r.pac.Fake, "get", "repositories"); got != test.reads {
				t.Errorf("%d live reads, want %d", got, test.reads)
			}
		})
	}
}

// The cache is not read, and an error does not mean that the Repository is gone.
func TestRepositoryGone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"it is there":            {nil, false},
		"it is gone":             {apierrors.NewNotFound(pacv1alpha1.Resource("repositories"), "app"), true},
		"the kind is not served": {unserved(), false},
		"it cannot be read":      {apierrors.NewServiceUnavailable("down"), false},
	} {
		r := newFixture(t)
		failing(&r.pac.Fake, "repositories", test.err)
		if got := r.begin("e", "own", "git.example").RepositoryGone(t.Context()); got != test.want ||
			count(&r.pac.Fake, "get", "repositories") != 1 {
			t.Errorf("%s: gone is %t after %d live reads", name, got, count(&r.pac.Fake, "get", "repositories"))
		}
	}
}

// B9: settings that cannot be read do not count as missing.
func TestWithGlobal(t *testing.T) {
	t.Parallel()
	global := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "global", UID: types.UID("global-uid")},
		Spec:       pacv1alpha1.RepositorySpec{Settings: &pacv1alpha1.Settings{PipelineRunProvenance: "default_branch"}},
	}
	merged := repository()
	merged.Spec.Settings = global.Spec.Settings
	for name, test := range map[string]struct {
		given func(*fixture)
		own   *pacv1alpha1.Repository
		want  *pacv1alpha1.Repository
		err   string
		reads int
	}{
		"there is none":         {func(*fixture) {}, repository(), repository(), "", 1},
		"none is named":         {func(r *fixture) { r.options.GlobalRepository = "" }, repository(), repository(), "", 0},
		"it is cached":          {func(r *fixture) { r.must(r.cache.Add(global)) }, repository(), merged, "", 0},
		"the cache lags":        {func(r *fixture) { r.must(r.pac.Tracker().Add(global)) }, repository(), merged, "", 1},
		"it is the event's own": {func(r *fixture) { r.must(r.cache.Add(global)) }, global, global, "", 0},
		"it cannot be read": {func(r *fixture) {
			failing(&r.pac.Fake, "repositories", apierrors.NewServiceUnavailable("down"))
		}, repository(), nil, "reading the global Repository plumbline/global: down", 1},
		"its kind is not served": {func(r *fixture) { failing(&r.pac.Fake, "repositories", unserved()) }, repository(), nil,
			"reading the global Repository", 1},
		"it was there and is not": {
			func(r *fixture) { r.must(r.cache.Add(global)); r.must(r.cache.Delete(global)) }, repository(), repository(), "", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			test.given(r)
			before := test.own.DeepCopy()
			got, err := r.begin("e", "own", "git.example").WithGlobal(t.Context(), test.own)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); err == nil && diff != "" {
				t.Error(diff)
			}
			if completed := test.want == merged; err == nil && (got == test.own) == completed {
				t.Error("want a copy if the global one completes the Repository, else the Repository itself")
			}
			if diff := cmp.Diff(before, test.own); diff != "" {
				t.Errorf("a cache's object was changed: %s", diff)
			}
			if reads := count(&r.pac.Fake, "get", "repositories"); reads != test.reads {
				t.Errorf("%d live reads, want %d", reads, test.reads)
			}
		})
	}
}
