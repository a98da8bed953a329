// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

func webhook(value string) map[string]string {
	return map[string]string{"webhook.secret": value, "provider.token": "never-copied"}
}

// The App's secret and those that Repositories name are copied, and nothing else of their Secrets.
// A copy goes when no Repository names its secret any more.
func TestNamedSecretsAreCopied(t *testing.T) {
	w := newEnv(t,
		secret(system, "app", map[string]string{"webhook.secret": "of-the-app\n", "github-private-key": "never-copied"}),
		secret("team", "lab", map[string]string{
			"webhook.secret": "new\n", "webhook.secret.previous": "old\n", "provider.token": "never-copied",
		}))
	w.repository("team", "one", "lab")
	w.repository("team", "two", "lab")
	if reads := w.reconcile(); len(reads) != 2 {
		t.Errorf("read %q, want each Secret once", reads)
	}
	w.wantCopy(system, "app", "webhook.secret", "of-the-app")
	w.wantCopy("team", "lab", "webhook.secret", "new old")
	if !w.complete() {
		t.Error("not complete, and everything is copied")
	}
	for _, action := range w.kube.Actions() {
		if strings.Contains(fmt.Sprintf("%s", action), "never-copied") {
			t.Errorf("written: %s", action)
		}
	}
	if w.reconcile(); w.writes() != 0 {
		t.Errorf("nothing has changed, and there are writes: %v", w.kube.Actions())
	}
	w.remove("team", "one")
	w.reconcile()
	w.wantCopy("team", "lab", "webhook.secret", "new old")
	w.remove("team", "two")
	w.reconcile()
	w.wantCopy("team", "lab", "webhook.secret", "")
	w.wantCopy(system, "app", "webhook.secret", "of-the-app")
}

// A Repository without a token of its own uses the webhook secret of the global one, as in the
// receiver.
func TestSecretOfTheGlobalRepositoryIsCopied(t *testing.T) {
	w := newEnv(t, secret(system, "all", webhook("of-all")))
	w.repository(system, "pipelines-as-code", "all")
	heir := &pacv1alpha1.Repository{Spec: pacv1alpha1.RepositorySpec{
		URL: "https://lab.example/heir", GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab"},
	}}
	heir.Namespace, heir.Name = "team", "heir"
	if err := w.cached.Add(heir); err != nil {
		t.Fatal(err)
	}
	w.r.names.changed()
	w.reconcile()
	w.wantCopy(system, "all", "webhook.secret", "of-all")
	id := copies.ID(pacv1alpha1.SecretKey{Namespace: system, Name: "all", Key: "webhook.secret"})
	wanted, _ := w.r.names.in(copies.ShardOf(id))
	if users := wanted[id].by; len(users) != 2 {
		t.Errorf("used by %v, want both", users)
	}
}

// A change is copied when a receiver requests that, whatever else is due, and otherwise after
// readEvery.
func TestChangeIsCopied(t *testing.T) {
	w := newEnv(t)
	w.store(secret("team", "lab", webhook("one")))
	w.repository("team", "app", "lab")
	w.reconcile()
	w.store(secret("team", "lab", webhook("two")))
	if reads := w.reconcile(); len(reads) != 0 {
		t.Errorf("read %q again at once", reads)
	}
	id := copies.ID(pacv1alpha1.SecretKey{Namespace: "team", Name: "lab", Key: "webhook.secret"})
	w.r.Request([]string{id, "nobody's", strings.Repeat("0", 32), ""})
	if reads := w.reconcile(); !slices.Equal(reads, []string{"team/lab"}) {
		t.Errorf("asked for one, read %q", reads)
	}
	w.wantCopy("team", "lab", "webhook.secret", "two")
	w.store(secret("team", "lab", webhook("three")))
	if after := w.woken[copies.ShardName(copies.ShardOf(id))]; after > readEvery {
		t.Errorf("is due after %v", after)
	}
	w.clock.SetTime(w.clock.Now().Add(readEvery))
	w.reconcile()
	w.wantCopy("team", "lab", "webhook.secret", "three")
}

// The condition of a Repository says that its Secret is missing.
func TestMissingSecretHasNoCopyAndUnreadableOneKeepsIts(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("shutting down")
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "lab",
		errors.New(`User "x" cannot get resource "secrets"`))
	whole := webhook("whole")
	for name, test := range map[string]struct {
		data            map[string]string // nil: the Secret is gone
		fails           error
		copy, condition string
	}{
		"all is well":            {whole, nil, "whole", ""},
		"the Secret is gone":     {nil, nil, "", "False SecretMissing"},
		"the key is gone":        {map[string]string{"other": "x"}, nil, "", "False SecretMissing"},
		"the value is empty":     {webhook(" \n"), nil, "", "False SecretMissing"},
		"the value is too long":  {webhook(strings.Repeat("x", copies.MaxValueBytes+1)), nil, "", "False SecretTooLong"},
		"the API server fails":   {whole, unavailable, "whole", ""},
		"the right is taken":     {whole, forbidden, "whole", ""},
		"the kind is not served": {whole, &apierrors.StatusError{}, "whole", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.store(secret("team", "lab", whole))
			w.repository("team", "app", "lab")
			w.reconcile()
			if test.data == nil {
				_ = w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "team", "lab")
			} else {
				w.store(secret("team", "lab", test.data))
			}
			w.fails("lab", test.fails)
			w.clock.SetTime(w.clock.Now().Add(readEvery))
			w.reconcile()
			w.wantCopy("team", "lab", "webhook.secret", test.copy)
			if got := w.condition("team", "app"); got != test.condition {
				t.Errorf("the condition is %q, want %q", got, test.condition)
			}
			if test.condition == "" {
				return
			}
			w.store(secret("team", "lab", whole))
			w.restart() // the next leader withdraws the condition
			w.reconcile()
			w.wantCopy("team", "lab", "webhook.secret", "whole")
			if got := w.condition("team", "app"); got != "True Copied" {
				t.Errorf("the condition is %q after it was fixed", got)
			}
		})
	}
}

// A new controller marks a shard as complete only after it has read everything.
func TestManySecretsAreReadWithinABudget(t *testing.T) {
	w := newEnv(t)
	const many = 3 * requestsPerSecond
	for n := range many {
		name := fmt.Sprintf("lab-%d", n)
		w.store(secret("team", name, webhook(name)))
		w.repository("team", name, name)
	}
	for second := 0; !w.complete(); second++ {
		if second > 2*many/requestsPerSecond {
			t.Fatal("it does not end")
		}
		if reads := w.reconcile(); len(reads) > requestsPerSecond {
			t.Fatalf("%d reads at once, want %d at most", len(reads), requestsPerSecond)
		}
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	for n := range many {
		name := fmt.Sprintf("lab-%d", n)
		w.wantCopy("team", name, "webhook.secret", name)
	}
	w.clock.SetTime(w.clock.Now().Add(readEvery))
	if reads := w.reconcile(); len(reads) != readsPerSecond {
		t.Errorf("%d reads without a request, want %d", len(reads), readsPerSecond)
	}
}

func TestNamespaceHasAShareOfAShard(t *testing.T) {
	w := newEnv(t)
	long := strings.Repeat("x", copies.MaxValueBytes)
	const many = copies.Shards*copies.MaxNamespaceBytes/copies.MaxValueBytes + 200
	for n := range many {
		w.repository("greedy", fmt.Sprintf("app-%d", n), fmt.Sprintf("lab-%d", n))
	}
	w.repository("modest", "app", "lab")
	w.store(secret("modest", "lab", webhook("modest")))
	w.kube.PrependReactor("get", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetNamespace() == "greedy", secret("greedy", a.(clienttesting.GetAction).GetName(), webhook(long)), nil
	})
	for range 2 * many / requestsPerSecond {
		w.reconcile()
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	w.wantCopy("modest", "lab", "webhook.secret", "modest")
	held, refusals := 0, 0
	for n := range many {
		if w.copied("greedy", fmt.Sprintf("lab-%d", n), "webhook.secret") != "" {
			held++
		}
		if w.condition("greedy", fmt.Sprintf("app-%d", n)) == "False NoRoom" {
			refusals++
		}
	}
	if most := copies.Shards * copies.MaxNamespaceBytes / copies.MaxValueBytes; held > most || held+refusals != many ||
		refusals == 0 {
		t.Errorf("%d copies of one namespace and %d refusals of %d, want %d copies at most", held, refusals, many, most)
	}
	if got := w.r.states(); got[copied] != held+1 || got[refused] != refusals {
		t.Errorf("counted %v", got)
	}
}

// Two controllers that believe to lead write one after the other. The second gets a conflict, and
// keeps its requests.
func TestConflictLosesNoRequest(t *testing.T) {
	w := newEnv(t)
	w.store(secret("team", "lab", webhook("one")))
	w.repository("team", "app", "lab")
	w.reconcile()
	w.store(secret("team", "lab", webhook("two")))
	id := copies.ID(pacv1alpha1.SecretKey{Namespace: "team", Name: "lab", Key: "webhook.secret"})
	w.r.Request([]string{id})
	conflicts := 1
	w.kube.PrependReactor("patch", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !strings.Contains(string(a.(clienttesting.PatchAction).GetPatch()), `"resourceVersion"`) {
			t.Error("the patch names no resource version")
		}
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(corev1.Resource("secrets"), "x", errors.New("modified"))
	})
	if err := w.r.Reconcile(t.Context(), w.r.key(copies.ShardOf(id)).String()); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want the conflict", err)
	}
	w.wantCopy("team", "lab", "webhook.secret", "one")
	w.reconcile()
	w.wantCopy("team", "lab", "webhook.secret", "two")
}

// Whatever kills the process, receivers have either the old copy, or the new value with the
// previous one.
func TestRotationIsAtomic(t *testing.T) {
	for name, lands := range map[string]bool{"it lands and the answer is lost": true, "it does not land": false} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.store(secret("team", "lab", webhook("one")))
			w.repository("team", "app", "lab")
			w.reconcile()
			rotated := webhook("two")
			rotated["webhook.secret"+copies.PreviousSuffix] = "one"
			w.store(secret("team", "lab", rotated))
			id := copies.ID(pacv1alpha1.SecretKey{Namespace: "team", Name: "lab", Key: "webhook.secret"})
			w.r.Request([]string{id})
			lost, left := errors.New("connection reset"), "one"
			w.kube.PrependReactor("patch", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
				err := lost
				if lost = nil; err != nil && lands {
					left = "two one"
					if _, _, err := clienttesting.ObjectReaction(w.kube.Tracker())(a); err != nil {
						t.Error(err)
					}
				}
				return err != nil, nil, err
			})
			if err := w.r.Reconcile(t.Context(), w.r.key(copies.ShardOf(id)).String()); err == nil {
				t.Fatal("the lost write is not an error")
			}
			w.wantCopy("team", "lab", "webhook.secret", left)
			w.restart()
			w.reconcile()
			w.wantCopy("team", "lab", "webhook.secret", "two one")
		})
	}
}

func TestOnlyTheLeaderCopies(t *testing.T) {
	w := newEnv(t)
	w.r.Demote(pkgreconciler.UniversalBucket())
	w.kube.ClearActions()
	if err := w.r.Reconcile(t.Context(), w.r.key(0).String()); !controller.IsSkipKey(err) || len(w.kube.Actions()) != 0 {
		t.Errorf("got %v and calls %v, want the key skipped", err, w.kube.Actions())
	}
}
