// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// leastCap is the smallest settled-cap.
const leastCap = 100

func smallCap() [][3]string {
	return [][3]string{{"plumbline", "settled-cap", fmt.Sprint(leastCap)}}
}

// prepareEviction kills the controller and makes the settled events the oldest above the cap. The
// half hour in which their secrets might come late is over, and the cap is full of later events.
// The next leader evicts them.
func (env *environment) prepareEviction(events ...v1alpha1.GitEvent) {
	env.t.Helper()
	env.kill(env.controller())
	env.controllers = nil
	client := env.Plumbline.PlumblineV1alpha1().GitEvents(env.Namespace)
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	for i := range events {
		events[i].Status.SettledAt = &long
		env.must(errOf(client.UpdateStatus(env.ctx, &events[i], metav1.UpdateOptions{})))
	}
	for n := range leastCap {
		other := &v1alpha1.GitEvent{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("zz-%d", n)}, Spec: *events[0].Spec.DeepCopy(),
		}
		other.Spec.DeliveryKey = other.Name
		created, err := client.Create(env.ctx, other, metav1.CreateOptions{})
		env.must(err)
		created.Status.Phase, created.Status.SettledAt = v1alpha1.PhaseSettled, &long
		env.must(errOf(client.UpdateStatus(env.ctx, created, metav1.UpdateOptions{})))
	}
}

// backdate returns the push with a body that says that it happened an hour ago. The receiver looks
// for no tombstone of a recent push, because no event is evicted within half an hour.
func (env *environment) backdate(push delivery) delivery {
	_, body := partsOf(push)
	at := fmt.Appendf(nil, `"pushed_at":%d`, time.Now().Add(-time.Hour).Unix())
	return env.git.signed(push, regexp.MustCompile(`"pushed_at":[0-9]+`).ReplaceAll(body, at), env.webhookSecret())
}

// putTombstonePage creates a page of tombstones.
func (env *environment) putTombstonePage(name string, entries ...string) {
	env.t.Helper()
	_, err := env.Plumbline.PlumblineV1alpha1().TombstonePages(env.Namespace).Create(env.ctx,
		&v1alpha1.TombstonePage{ObjectMeta: metav1.ObjectMeta{Name: name}, Entries: entries}, metav1.CreateOptions{})
	env.must(err)
}

// awaitTombstone waits until an event is deleted, and returns its tombstone.
func (env *environment) awaitTombstone(event string) tombstone.Entry {
	env.t.Helper()
	env.eventually(afterFault, event+" is evicted", func() error {
		for _, e := range env.events() {
			if e.Name == event {
				return errors.New("it is still there")
			}
		}
		return nil
	})
	page, err := env.Plumbline.PlumblineV1alpha1().TombstonePages(env.Namespace).Get(env.ctx, tombstone.PageOf(event),
		metav1.GetOptions{})
	env.must(err)
	entry, found := tombstone.Find(page, event, time.Now())
	if !found {
		env.t.Fatalf("%s is evicted and its page says nothing of it: %v", event, page.Entries)
	}
	return entry
}

// stubLimit is the size limit of a settled event with two runs, including the API server's managed
// fields.
const stubLimit = 6 << 10

// requireSmallStub measures an event as the API server returns it.
func (env *environment) requireSmallStub(event v1alpha1.GitEvent) {
	env.t.Helper()
	stored, err := env.Plumbline.PlumblineV1alpha1().RESTClient().Get().Namespace(env.Namespace).Resource(
		"gitevents").Name(event.Name).DoRaw(env.ctx)
	env.must(err)
	notes, err := json.Marshal(event.ManagedFields)
	env.must(err)
	env.t.Logf("the stub of %d runs has %d bytes, %d of them are managedFields", len(event.Status.Runs), len(stored),
		len(notes))
	if len(stored) > stubLimit {
		env.t.Errorf("the stub has %d bytes, want at most %d: %s", len(stored), stubLimit, stored)
	}
}

// Two events are evicted within the time in which their deliveries may be sent again. A redelivery
// of the one that ran does not run again. A redelivery of the one that was refused for a reason
// outside its content is processed under the next name.
func TestRedeliveryOfEvictedEventIsRecognized(t *testing.T) {
	t.Parallel()
	retry := "-operator-retry=" + operatorRetry.String()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1, flags: []string{retry}, config: smallCap()})
	sha, first := env.push(map[string]string{
		".tekton/run.yaml": pipeline("ran", "push"), ".tekton/beside.yaml": pipeline("beside", "push"),
	})
	first = env.backdate(first)
	env.deliver(first, http.StatusAccepted)
	env.awaitCheck(sha, checkName("ran"), "success", soon)
	env.awaitSettled(sha, afterFault)
	later, second := env.push(map[string]string{
		".tekton/run.yaml": pipeline("refused", "push"), ".tekton/beside.yaml": pipeline("other", "push"),
	})
	second = env.backdate(second)
	installAgain := env.uninstall()
	env.deliver(second, http.StatusAccepted)
	env.awaitSettled(later, afterFault)
	ran, refused := env.recordOf(first), env.recordOf(second)
	if ran.Status.Disposition != v1alpha1.DispositionRuns || refused.Status.Disposition != v1alpha1.DispositionRefused {
		t.Fatalf("the events ended as %s and %s, want one that ran and one that was refused", ran.Status.Disposition,
			refused.Status.Disposition)
	}
	env.requireSmallStub(ran)
	env.prepareEviction(ran, refused)
	env.putTombstonePage("tombstones-over", fmt.Sprintf("push-x %016d done %d", 0, time.Now().Add(-time.Minute).Unix()))
	installAgain()
	env.startController(false, retry)

	if env.awaitTombstone(ran.Name).Again || !env.awaitTombstone(refused.Name).Again {
		t.Error("the tombstones say of the wrong one that it may run again")
	}
	env.eventually(soon, "the page whose tombstones are over is deleted", func() error {
		_, err := env.Plumbline.PlumblineV1alpha1().TombstonePages(env.Namespace).Get(env.ctx, "tombstones-over",
			metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	if answer := env.redeliverAccepted(first); !strings.Contains(answer, "already recorded as "+ran.Name) {
		t.Errorf("the delivery of the event that ran is answered %s, want that it is recorded", answer)
	}
	if answer := env.redeliverAccepted(second); !strings.Contains(answer, "recorded as "+refused.Name+"-r1") {
		t.Errorf("the delivery of the event that was refused is answered %s, want it recorded again", answer)
	}
	env.awaitCheck(later, checkName("refused"), "success", afterFault)
	env.awaitAllSettled(afterFault)
	if again := env.recordOf(first); again.Name != "" {
		t.Errorf("there is GitEvent %s of the delivery that ran", again.Name)
	}
	env.requireRanOnce("ran")
	env.requireRanOnce("beside")
	env.requireRanOnce("refused")
	env.requireRanOnce("other")
	env.requireNoFailure(sha)
	env.requireNoFailure(later)
}

// redeliverAccepted returns the answer to a redelivery that is accepted.
func (env *environment) redeliverAccepted(d delivery) string {
	env.t.Helper()
	status, body, err := env.git.redeliver(env.ctx, d.ID())
	if err != nil || status != http.StatusAccepted {
		env.t.Fatalf("a redelivery is answered %d %s, %v", status, body, err)
	}
	return string(body)
}
