// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// wait makes an event wait because of a Secret.
func (r *fixture) wait(name, namespace, secret string) {
	r.t.Helper()
	s := r.begin(name, "app", "git.example")
	_, _ = s.Secret(r.t.Context(), namespace, secret)
	waits(s, missing)
	s.End(true, false)
}

func always(string) bool { return true }

// B8: each Secret is read once. Only events that were tried with another content wake.
func TestLookOnce(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.store(secret(tenant, "b", map[string]string{"k": "v"}))
	r.wait("1", tenant, "a")
	r.wait("2", tenant, "a")
	r.wait("3", tenant, "b")
	look := func(what string, open func(string) bool, reads int, want ...string) {
		t.Helper()
		before := count(&r.kube.Fake, "get", "secrets")
		r.woken = nil
		r.LookOnce(t.Context(), open)
		slices.Sort(r.woken)
		if diff := cmp.Diff(want, r.woken); diff != "" {
			t.Errorf("%s: woken: %s", what, diff)
		}
		if got := count(&r.kube.Fake, "get", "secrets") - before; got != reads {
			t.Errorf("%s: %d reads, want %d", what, got, reads)
		}
	}
	look("nothing changed", always, 2)
	r.store(secret(tenant, "a", map[string]string{"k": "v"}))
	look("one was created", always, 2, "1", "2")
	look("they were not tried yet", always, 2, "1", "2")
	r.wait("1", tenant, "a")
	look("one was tried", always, 2, "2")
	r.store(secret(tenant, "b", map[string]string{"k": "w"}))
	look("one is another process's", func(event string) bool { return event != "3" }, 1, "2")
	look("that one is forgotten", always, 1, "2")
	look("all are settled", func(string) bool { return false }, 0)
	if r.Waiting() != 0 {
		t.Errorf("%d events are remembered", r.Waiting())
	}
}

// A read that fails changes nothing.
func TestLookOnceRetriesAfterAnError(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.wait("1", tenant, "a")
	r.wait("2", tenant, "b")
	failing(&r.kube.Fake, "secrets", apierrors.NewServiceUnavailable("down"))
	before := count(&r.kube.Fake, "get", "secrets")
	r.LookOnce(t.Context(), always)
	if got := count(&r.kube.Fake, "get", "secrets") - before; got != 1 || len(r.woken) != 0 || r.Waiting() != 2 {
		t.Errorf("%d reads, %v woke, %d wait: want the look to end at the first", got, r.woken, r.Waiting())
	}
}

// It reads the Secrets again and again until its context ends.
func TestPollSecrets(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.wait("1", tenant, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	looks := 0
	r.PollSecrets(ctx, time.Millisecond, func(string) bool {
		if looks++; looks == 3 {
			cancel()
		}
		return true
	})
	if looks != 3 {
		t.Errorf("%d looks, want three", looks)
	}
}

// A change of the Repository, or of the global one, wakes events as well.
func TestRepositoryChanged(t *testing.T) {
	t.Parallel()
	own, elsewhere, global := repository(), repository(), repository()
	elsewhere.Namespace = "other"
	global.ObjectMeta = metav1.ObjectMeta{Namespace: system, Name: "global"}
	same, changed := own.DeepCopy(), own.DeepCopy()
	same.Status.ObservedGeneration, changed.Spec.GitProvider = 1, &pacv1alpha1.GitProvider{Type: "gitlab"}
	held, runs, others := event("held", "own", "git.example"), event("runs", "own", "git.example"),
		event("other's", "own", "git.example")
	others.Spec.Repository.Name = "other"
	for e, f := range map[*v1alpha1.GitEvent]*fault.Error{held: forbids, runs: outage, others: missing} {
		e.Status.Waits = []v1alpha1.Wait{{Class: f.Class.String(), Reason: f.Reason}}
	}
	for name, test := range map[string]struct {
		before, after any
		want          []string
	}{
		"only its status changed":  {own, same, nil},
		"its spec changed":         {own, changed, []string{"held"}},
		"it was created":           {nil, own, []string{"held"}},
		"another one of its name":  {nil, elsewhere, nil},
		"the global one":           {nil, global, []string{"held", "other's"}},
		"what is no Repository":    {nil, held, nil},
		"nothing, of which it was": {own, nil, nil},
	} {
		r, listed := newFixture(t), false
		r.RepositoryChanged(test.before, test.after, func() []*v1alpha1.GitEvent {
			listed = true
			return []*v1alpha1.GitEvent{held, runs, others}
		})
		slices.Sort(r.woken)
		if diff := cmp.Diff(test.want, r.woken); diff != "" || !listed && test.want != nil {
			t.Errorf("%s: %s", name, diff)
		}
		for _, event := range test.want {
			if !r.begin(event, "own", "git.example").Fixed(forbids.Reason) {
				t.Errorf("%s: %s wakes and must wait on", name, event)
			}
		}
	}
}
