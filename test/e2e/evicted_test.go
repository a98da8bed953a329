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

// evictable kills the controller and makes the settled events that there are the oldest above the
// cap: the half hour in which their secrets might come late is over, and as many others follow them
// as are kept. Who leads next evicts them.
func (w *world) evictable(events ...v1alpha1.GitEvent) {
	w.t.Helper()
	w.kill(w.controller())
	w.controllers = nil
	client := w.Plumbline.PlumblineV1alpha1().GitEvents(w.Namespace)
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	for i := range events {
		events[i].Status.SettledAt = &long
		_, err := client.UpdateStatus(w.ctx, &events[i], metav1.UpdateOptions{})
		w.must(err)
	}
	for n := range leastCap {
		other := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("zz-%d", n)}, Spec: *events[0].Spec.DeepCopy()}
		other.Spec.DeliveryKey = other.Name
		created, err := client.Create(w.ctx, other, metav1.CreateOptions{})
		w.must(err)
		created.Status.Phase, created.Status.SettledAt = v1alpha1.PhaseSettled, &long
		_, err = client.UpdateStatus(w.ctx, created, metav1.UpdateOptions{})
		w.must(err)
	}
}

// anHourAgo is a push whose body says that it happened an hour ago: nobody looks for a tombstone of
// one that has just happened, because none is evicted within half an hour.
func (w *world) anHourAgo(push delivery) delivery {
	_, body := partsOf(push)
	at := fmt.Appendf(nil, `"pushed_at":%d`, time.Now().Add(-time.Hour).Unix())
	return w.git.signed(push, regexp.MustCompile(`"pushed_at":[0-9]+`).ReplaceAll(body, at), w.webhookSecret())
}

// putPage makes a page of tombstones.
func (w *world) putPage(name string, entries ...string) {
	w.t.Helper()
	_, err := w.Plumbline.PlumblineV1alpha1().TombstonePages(w.Namespace).Create(w.ctx,
		&v1alpha1.TombstonePage{ObjectMeta: metav1.ObjectMeta{Name: name}, Entries: entries}, metav1.CreateOptions{})
	w.must(err)
}

// remembered waits until an event is deleted, and returns its tombstone.
func (w *world) remembered(event string) tombstone.Entry {
	w.t.Helper()
	w.eventually(afterFault, event+" is evicted", func() error {
		for _, e := range w.events() {
			if e.Name == event {
				return errors.New("it is still there")
			}
		}
		return nil
	})
	page, err := w.Plumbline.PlumblineV1alpha1().TombstonePages(w.Namespace).Get(w.ctx, tombstone.PageOf(event), metav1.GetOptions{})
	w.must(err)
	entry, found := tombstone.Find(page, event, time.Now())
	if !found {
		w.t.Fatalf("%s is evicted and its page says nothing of it: %v", event, page.Entries)
	}
	return entry
}

// stubLimit is what a settled event with two runs may take, with what the API server notes of who
// wrote which field.
const stubLimit = 6 << 10

// smallStub measures an event as the API server returns it.
func (w *world) smallStub(event v1alpha1.GitEvent) {
	w.t.Helper()
	stored, err := w.Plumbline.PlumblineV1alpha1().RESTClient().Get().Namespace(w.Namespace).Resource("gitevents").Name(event.Name).DoRaw(w.ctx)
	w.must(err)
	notes, err := json.Marshal(event.ManagedFields)
	w.must(err)
	w.t.Logf("the stub of %d runs has %d bytes, %d of them are managedFields", len(event.Status.Runs), len(stored), len(notes))
	if len(stored) > stubLimit {
		w.t.Errorf("the stub has %d bytes, want at most %d: %s", len(stored), stubLimit, stored)
	}
}

// Two events are evicted within the time in which their deliveries may be sent again. What ran does
// not run twice; what was refused for another reason than its content is processed, under the next
// name.
func TestARedeliveryOfAnEvictedEventIsAnsweredAsRecorded(t *testing.T) {
	t.Parallel()
	retry := "-operator-retry=" + operatorRetry.String()
	w := newWorld(t, setup{receivers: 1, controllers: 1, flags: []string{retry}, config: smallCap()})
	w.claimed()
	sha, first := w.push(map[string]string{".tekton/run.yaml": pipeline("ran", "push"), ".tekton/beside.yaml": pipeline("beside", "push")})
	first = w.anHourAgo(first)
	w.deliver(first, http.StatusAccepted)
	w.checkReaches(sha, checkName("ran"), "success", soon)
	w.settles(sha, afterFault)
	later, second := w.push(map[string]string{".tekton/run.yaml": pipeline("refused", "push"), ".tekton/beside.yaml": pipeline("other", "push")})
	second = w.anHourAgo(second)
	installAgain := w.uninstall()
	w.deliver(second, http.StatusAccepted)
	w.settles(later, afterFault)
	ran, refused := w.recordOf(first), w.recordOf(second)
	if ran.Status.Disposition != v1alpha1.DispositionRuns || refused.Status.Disposition != v1alpha1.DispositionRefused {
		t.Fatalf("the events ended as %s and %s, want one that ran and one that was refused", ran.Status.Disposition, refused.Status.Disposition)
	}
	w.smallStub(ran)
	w.evictable(ran, refused)
	w.putPage("tombstones-over", fmt.Sprintf("push-x %016d done %d", 0, time.Now().Add(-time.Minute).Unix()))
	installAgain()
	w.startController(false, retry)

	if w.remembered(ran.Name).Again || !w.remembered(refused.Name).Again {
		t.Error("the tombstones say of the wrong one that it may run again")
	}
	w.eventually(soon, "the page whose tombstones are over is deleted", func() error {
		_, err := w.Plumbline.PlumblineV1alpha1().TombstonePages(w.Namespace).Get(w.ctx, "tombstones-over", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	if answer := w.redelivered(first); !strings.Contains(answer, "already recorded as "+ran.Name) {
		t.Errorf("the delivery of the event that ran is answered %s, want that it is recorded", answer)
	}
	if answer := w.redelivered(second); !strings.Contains(answer, "recorded as "+refused.Name+"-r1") {
		t.Errorf("the delivery of the event that was refused is answered %s, want it recorded again", answer)
	}
	w.checkReaches(later, checkName("refused"), "success", afterFault)
	w.settled(afterFault)
	if again := w.recordOf(first); again.Name != "" {
		t.Errorf("there is GitEvent %s of the delivery that ran", again.Name)
	}
	w.ranOnce("ran")
	w.ranOnce("beside")
	w.ranOnce("refused")
	w.ranOnce("other")
	w.neverFailed(sha)
	w.neverFailed(later)
}

// redelivered returns the answer to a redelivery that is accepted.
func (w *world) redelivered(d delivery) string {
	w.t.Helper()
	status, body, err := w.git.redeliver(w.ctx, d.ID())
	if err != nil || status != http.StatusAccepted {
		w.t.Fatalf("a redelivery is answered %d %s, %v", status, body, err)
	}
	return string(body)
}
