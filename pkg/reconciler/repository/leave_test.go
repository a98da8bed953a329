// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const falseNotServed = "False " + reasonNotServed

func (w *env) serve(namespaces string) {
	w.configure(map[string]string{"serve-namespaces": namespaces})
}

// Its Repositories are of another installation.
func TestNamespaceThatWasNeverServedCostsNoCall(t *testing.T) {
	theirs := repo("two", "app", appURL)
	theirs.By("second").MarkFalse(urlCondition, reasonClaimed, "theirs")
	w := newEnv(t, repo("one", "app", appURL), theirs, repo(systemNS, "pipelines-as-code", ""))
	w.serve("one")
	w.reconcile("one/app", systemNS+"/pipelines-as-code")
	w.wantOwner(appURL, "one/app")
	w.wantCondition(systemNS, "pipelines-as-code", urlCondition, "True Global")
	w.catchUp()
	w.client.ClearActions()
	if err := w.r.Reconcile(t.Context(), "two/app"); err != nil || len(w.client.Actions()) != 0 ||
		len(w.published()) != 0 {
		t.Errorf("%v after %v", err, w.client.Actions())
	}
	w.wantCondition("two", "app", urlCondition, "False "+reasonClaimed)
}

// The claim stays for a day, the status says so once, and the next installation replaces that.
func TestLeftNamespaceIsTakenOver(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.events = []*v1alpha1.GitEvent{waiting("event", operatorWait("PermissionMissing", time.Minute))}
	w.reconcile("one/app")
	w.wantCondition("one", "app", credentials, "False PermissionMissing")
	w.serve("!one")
	w.published()
	if after := w.reconcile("one/app"); after != claimKept {
		t.Errorf("is woken after %s, want %s", after, claimKept)
	}
	w.wantCondition("one", "app", urlCondition, falseNotServed)
	w.wantCondition("one", "app", credentials, "True "+reasonNotServed)
	if left := w.repository("one", "app").Status.Annotations; len(left) != 0 {
		t.Errorf("annotations %v are left", left)
	}
	if claim := w.claimOf(appURL); claim == nil || claim.Status.ReleasedAt == nil {
		t.Errorf("claim %+v, want it released", claim)
	}
	if published := w.published(); !slices.ContainsFunc(published, func(e string) bool {
		return strings.Contains(e, "The installation in namespace plumbline does not serve namespace one any more")
	}) {
		t.Errorf("Events %q", published)
	}
	w.writes()
	w.r.namespace, w.events = "second", nil // whose own setting names one
	w.serve("one")
	w.reconcile("one/app")
	w.wantCondition("one", "app", ready, "True ")
	w.writes()
	w.r.namespace = systemNS
	w.serve("!one")
	w.restart()
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
	if writes := w.writes(); len(writes) != 0 {
		t.Errorf("the first installation still writes %v", writes)
	}
	w.advance(claimKept)
	w.reconcile("one/app")
	if writes := w.writes(); !slices.Equal(writes, []string{"delete repositoryclaims"}) {
		t.Errorf("a day later: %v", writes)
	}
}

// The owner of a Repository that returns to Pipelines-as-Code reads who serves it.
func TestLeftNamespaceIsServedByPipelinesAsCode(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.configure(map[string]string{"serve-namespaces": "!one", "pipelines-as-code-url": "http://pac:8080"})
	w.reconcile("one/app")
	condition := w.repository("one", "app").Status.GetCondition(urlCondition)
	if !condition.IsFalse() || !strings.HasPrefix(condition.Message, "Pipelines-as-Code serves namespace one") {
		t.Errorf("%+v", condition)
	}
}

// Until its claim is released a Repository may have a condition to withdraw. A write that fails is
// repeated.
func TestStatusIsWithdrawnBeforeTheClaimIsReleased(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.serve("two")
	w.failOnce("update", "repositories", apierrors.NewInternalError(errors.New("etcd")))
	w.catchUp()
	_ = w.r.Reconcile(t.Context(), "one/app") // it is woken again
	if w.claimOf(appURL).Status.ReleasedAt != nil {
		t.Error("the claim is released, and the status says that the URL is served")
	}
	w.advance(time.Minute)
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, falseNotServed)
	if w.claimOf(appURL).Status.ReleasedAt == nil {
		t.Error("the claim is not released")
	}
}

func TestNamespaceServedAgainGetsItsClaimsAtOnce(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.serve("!one")
	w.reconcile("one/app")
	w.serve("one")
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
	if claim := w.claimOf(appURL); claim == nil || claim.Status.ReleasedAt != nil {
		t.Errorf("claim %+v", claim)
	}
}

// Only served namespaces take turns with an unproven URL.
func TestRivalsAreOfServedNamespaces(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL), repo("six", "app", appURL))
	w.serve("!two")
	if got := fmt.Sprint(w.r.rivals(v1alpha1.ClaimName(appURL))); strings.Contains(got, "two") ||
		!strings.Contains(got, "six/app") {
		t.Errorf("rivals %s", got)
	}
}

func TestInvalidServeNamespacesChangesNothing(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), repo("two", "app", appURL+"2"))
	w.reconcile("one/app")
	w.writes()
	w.serve("one_")
	w.reconcile("one/app", "two/app")
	if writes := w.writes(); len(writes) != 0 {
		t.Errorf("wrote %v", writes)
	}
}

// The runs of recorded events still get slots. Then the queue is removed from the status.
func TestRunsOfALeftNamespaceGetSlots(t *testing.T) {
	w := queued(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	w.serve("two")
	w.wantQueue(1, 1, "r0")
	w.ran(0, ended)
	w.wantQueue(1, 0, "r1")
	w.wantCondition("one", "app", urlCondition, falseNotServed)
	w.ran(1, ended)
	w.reconcile("one/app")
	if queues := w.repository("one", "app").Status.Queues; queues != nil {
		t.Errorf("queues %+v are left", queues)
	}
}

// leavingEnv returns an env in which a second installation has taken over, and the first one still
// has its claim and leaves.
func leavingEnv(t *testing.T) *env {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	w.serve("!one")
	return w
}

// takeOver lets the second installation, which serves the namespace, write that the URL is served.
func (w *env) takeOver() {
	app := w.repository("one", "app")
	app.By("second").MarkTrue(urlCondition, reasonOwned, "served")
	app.ResourceVersion += "1"
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), app, "one"))
}

// A late write of another process of the first installation is withdrawn. The condition URL of the
// next installation stays.
func TestLateConditionIsWithdrawnAlone(t *testing.T) {
	w := leavingEnv(t)
	w.reconcile("one/app")
	w.takeOver()
	late := w.repository("one", "app")
	late.By(systemNS).MarkFalse(pacv1alpha1.RepositoryPolicy, "TeamNotFound", "late")
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), late, "one"))
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
	if c := w.repository("one", "app").Status.GetCondition(pacv1alpha1.RepositoryPolicy); c != nil {
		t.Errorf("%+v is left", c)
	}
}

// While the cache of claims is behind, or a claim cannot be released, the two installations do not
// overwrite each other.
func TestURLIsWithdrawnOnce(t *testing.T) {
	for name, fails := range map[string]bool{"the cache of claims is behind": false,
		"the claim cannot be released": true} {
		t.Run(name, func(t *testing.T) {
			w := leavingEnv(t)
			if fails {
				w.client.PrependReactor("update", "repositoryclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewInternalError(errors.New("etcd"))
				})
			}
			w.catchUp()
			claims, withdrawn := w.r.claims.List(), 0
			for range 20 {
				w.advance(time.Millisecond)
				w.catchUp()
				w.must(w.r.claims.Replace(claims, ""))
				_ = w.r.Reconcile(t.Context(), "one/app")
				if w.repository("one", "app").Status.GetCondition(urlCondition).IsFalse() {
					withdrawn++
					w.takeOver()
				}
			}
			if withdrawn != 1 {
				t.Errorf("it was withdrawn %d times in the same moment", withdrawn)
			}
		})
	}
}

// The slots count for the next installation.
func TestNewProcessReleasesSlotsOfALeftNamespace(t *testing.T) {
	for _, setting := range []string{"two", "bad_value"} {
		t.Run(setting, func(t *testing.T) {
			w := queued(t, 1, 1)
			w.wantQueue(1, 0, "r0")
			w.restart()
			w.serve(setting)
			w.synced = false
			w.ran(0, ended)
			if after := w.reconcile("one/app"); after == 0 || after > syncWait {
				t.Errorf("the events are not known yet, and it is woken after %s", after)
			}
			w.synced = true
			w.reconcile("one/app")
			if slots := w.repository("one", "app").Status.Slots(); len(slots) != 0 {
				t.Errorf("slots %+v are left", slots)
			}
		})
	}
}

// Recorded events are finished however long they wait, and planning one needs the claim.
func TestClaimStaysForOpenEvents(t *testing.T) {
	w := leavingEnv(t)
	w.events = []*v1alpha1.GitEvent{waiting("event", operatorWait("CredentialsMissing", time.Minute))}
	w.reconcile("one/app")
	w.advance(claimKept)
	if after := w.reconcile("one/app"); w.claimOf(appURL) == nil || after != openEventsEvery {
		t.Errorf("the claim is %+v, and is checked after %s", w.claimOf(appURL), after)
	}
	w.events, w.synced = nil, false // a process that starts
	w.reconcile("one/app")
	if w.claimOf(appURL) == nil {
		t.Error("the claim is gone before the open events are known")
	}
	w.synced = true
	w.reconcile("one/app")
	if w.claimOf(appURL) != nil {
		t.Error("the claim is still there")
	}
}

// The rights in a left namespace may end, so its Repositories cost no call there.
func TestLeftNamespaceIsNotRead(t *testing.T) {
	w := leavingEnv(t)
	w.reconcile("one/app")
	w.setURL("one", "app", appURL+"2")
	w.catchUp()
	w.client.PrependReactor("get", "repositories", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(pacv1alpha1.Resource("repositories"), "app", errors.New("no rights"))
	})
	w.reconcile("one/app")
	w.delete("one", "app")
	w.advance(claimKept)
	w.reconcile("one/app")
	if w.claimOf(appURL) != nil {
		t.Error("the claim is still there")
	}
}
