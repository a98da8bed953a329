// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/reconciler"
)

const (
	// late is when a test gives up; everything takes milliseconds.
	late = 20 * time.Second
	// lease is longer than that, as are the times between attempts. So no process gets a lease
	// because it expired or because of a second attempt.
	lease = 10 * time.Minute
)

var event = types.NamespacedName{Namespace: "plumbline", Name: "event"}

// worker works on a key until it is let go.
type worker struct {
	reconciler.LeaderAwareFuncs
	begun, letGo chan struct{}
}

func (w *worker) Reconcile(_ context.Context, key string) error {
	if !w.IsLeaderFor(event) {
		return controller.NewSkipKey(key)
	}
	close(w.begun)
	<-w.letGo
	return nil
}

// process is one that takes part in an election with one lease.
type process struct {
	*worker
	queue    *LeasedReconciler
	election *Election
	promoted chan struct{}
	stop     func()
}

func start(t *testing.T, client kubernetes.Interface, identity string, drain time.Duration) *process {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	election, err := New(ctx.Done(), client, "plumbline", leaderelection.ComponentConfig{
		Component: "controller", Buckets: 1, Identity: identity, LeaseDuration: lease, RenewDeadline: lease / 2,
		RetryPeriod: lease / 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	election.drain = drain
	p := &process{worker: &worker{begun: make(chan struct{}), letGo: make(chan struct{})}, election: election,
		promoted: make(chan struct{}), stop: stop}
	p.PromoteFunc = func(reconciler.Bucket, func(reconciler.Bucket, types.NamespacedName)) error {
		close(p.promoted)
		return nil
	}
	p.queue = NewLeasedReconciler(With(ctx, election), p.worker, "events")
	p.queue.Enqueue = func(reconciler.Bucket, types.NamespacedName) {}
	for range 2 { // as knative does
		if err := p.queue.Promote(reconciler.UniversalBucket(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// pair is a process that leads and works on a key, and one that has found the lease taken.
func pair(t *testing.T, drain time.Duration) (leader, other *process, client kubernetes.Interface) {
	t.Helper()
	client = fake.NewClientset()
	leader = start(t, client, "leader", drain)
	await(t, leader.promoted, "the first leads")
	go func() { _ = leader.queue.Reconcile(t.Context(), event.String()) }()
	await(t, leader.begun, "the first works")
	other = start(t, client, "other", drain)
	eventually(t, "the other one has found the lease taken",
		func() bool { return calls(client, "get") > 1 && calls(client, "watch") > 1 })
	return leader, other, client
}

// A leader that has to stop starts no new work, and holds the lease until its current work is done.
// Then another process gets the lease at once.
func TestLeaseIsHeldUntilTheWorkIsDone(t *testing.T) {
	leader, other, client := pair(t, lease)
	leader.stop()
	eventually(t, "the first begins nothing new", func() bool { return !leader.IsLeaderFor(event) })
	if err := leader.queue.Reconcile(t.Context(), event.String()); !controller.IsSkipKey(err) {
		t.Errorf("a key that comes while the process ends: %v, want that it is skipped", err)
	}
	if !leader.queue.Holds(event) || held(t, client) != "leader" {
		t.Errorf("the lease is %q's although it is worked under, which holds it: %t", held(t, client),
			leader.queue.Holds(event))
	}
	close(leader.letGo)
	leader.election.Wait()
	if leader.queue.Holds(event) {
		t.Error("the first still holds a lease that it has released")
	}
	await(t, other.promoted, "the other one leads")
}

// Work that hangs keeps the lease until the drain limit, and may send nothing after that.
func TestLeaseIsReleasedDespiteHangingWork(t *testing.T) {
	leader, other, _ := pair(t, time.Millisecond)
	leader.stop()
	await(t, other.promoted, "the other one leads")
	if leader.queue.Holds(event) {
		t.Error("what hangs could go on next to the other process")
	}
	close(leader.letGo)
}

// A process requests a deleted lease at once, too: an operator deletes the lease of a dead process.
func TestDeletedLeaseIsRecreated(t *testing.T) {
	client := fake.NewClientset()
	if err := resourceLock(client).Create(t.Context(),
		resourcelock.LeaderElectionRecord{HolderIdentity: "dead", LeaseDurationSeconds: int(lease.Seconds())}); err != nil {
		t.Fatal(err)
	}
	p := start(t, client, "living", lease)
	eventually(t, "it has found the lease taken",
		func() bool { return calls(client, "get") > 0 && calls(client, "watch") > 0 })
	if p.queue.Holds(event) {
		t.Fatal("it holds the lease of another one")
	}
	if err := client.CoordinationV1().Leases("plumbline").Delete(t.Context(), leaseName,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, p.promoted, "it leads")
}

// A renewal in flight is not cancelled when the process has to end. If it was applied after the
// lease was read, the release of the lease would fail.
func TestRenewalIsNotCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), lease)
	cancel()
	term := &term{queue: &LeasedReconciler{}}
	l := &lock{term: term, limit: lease, lease: lease}
	send := func(ctx context.Context, _ resourcelock.LeaderElectionRecord) error { return ctx.Err() }
	if err := l.write(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "we"}, send); err != nil || !term.holds() {
		t.Errorf("the renewal: %v, holds %t", err, term.holds())
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if err := l.write(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: "we"}, send); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("a renewal after its deadline: %v", err)
	}
}

// A process that was paused reads that another process has the lease. It holds nothing, and does
// not release the lease of the other process.
func TestLeaseOfAnotherProcessIsNotReleased(t *testing.T) {
	client := fake.NewClientset()
	p := start(t, client, "paused", lease)
	await(t, p.promoted, "it leads")
	record(t, client, "other")
	p.stop()
	p.election.Wait()
	if got := held(t, client); got != "other" {
		t.Errorf("the other one's lease is %q's", got)
	}
}

// A process that was paused for longer than the lease lasts does not hold it any more, even before
// it reads the lease.
func TestExpiredLeaseIsNotHeld(t *testing.T) {
	term := &term{queue: &LeasedReconciler{}}
	l := &lock{term: term, limit: lease, lease: time.Millisecond}
	send := func(context.Context, resourcelock.LeaderElectionRecord) error { return nil }
	if err := l.write(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "we"}, send); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a lease that is over is not held", func() bool { return !term.holds() })
}

// A process that reads that its lease is another process's, or was, starts nothing more, and
// requests the lease again.
func TestTakenLeaseIsLostAtOnce(t *testing.T) {
	for _, holder := range []string{"other", ""} {
		inner := &recorded{identity: "we", record: resourcelock.LeaderElectionRecord{HolderIdentity: holder}}
		attempt, retry := context.WithCancel(t.Context())
		term := &term{queue: &LeasedReconciler{}, until: time.Now().Add(lease), retry: retry}
		if _, _, err := (&lock{Interface: inner, term: term}).Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		if term.holds() || attempt.Err() == nil {
			t.Errorf("a lease of %q: it holds it %t, the attempt: %v", holder, term.holds(), attempt.Err())
		}
	}
}

// The watch reports that a lease was released while this process is getting it already. The process
// keeps it.
func TestLeaseBeingTakenIsNotReleased(t *testing.T) {
	attempt, retry := context.WithCancel(t.Context())
	term := &term{queue: &LeasedReconciler{}, retry: retry}
	l := &lock{term: term, limit: lease, lease: lease}
	send := func(context.Context, resourcelock.LeaderElectionRecord) error { term.free(); return nil }
	if err := l.write(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "we"}, send); err != nil ||
		attempt.Err() != nil {
		t.Errorf("the write: %v, the attempt: %v", err, attempt.Err())
	}
}

// recorded is a lease that is only read.
type recorded struct {
	resourcelock.Interface
	identity string
	record   resourcelock.LeaderElectionRecord
}

func (r *recorded) Identity() string { return r.identity }

func (r *recorded) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &r.record, nil, nil
}

// record makes holder the holder of the lease, without regard to the current one.
func record(t *testing.T, client kubernetes.Interface, holder string) {
	t.Helper()
	l := resourceLock(client)
	was, _, err := l.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	was.HolderIdentity = holder
	if err := l.Update(t.Context(), *was); err != nil {
		t.Fatal(err)
	}
}

const leaseName = "controller.events.00-of-01"

func resourceLock(client kubernetes.Interface) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: leaseName}, Client: client.CoordinationV1(),
	}
}

func held(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	record, _, err := resourceLock(client).Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return record.HolderIdentity
}

func calls(client kubernetes.Interface, verb string) int {
	n := 0
	for _, action := range client.(*fake.Clientset).Actions() {
		if action.GetVerb() == verb {
			n++
		}
	}
	return n
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(late):
		t.Fatalf("not in time: %s", what)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(late); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
