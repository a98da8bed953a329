// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"sync"
	"time"

	"knative.dev/pkg/reconciler"
)

// term is the state of one lease in this process: it is a candidate, it leads, or it only finishes
// what it has started.
type term struct {
	queue  *LeasedReconciler
	bucket reconciler.Bucket

	changing sync.Mutex // held while the reconciler is promoted or demoted
	leads    bool       // the reconciler is promoted
	ending   bool       // the process has to end

	mu      sync.Mutex
	until   time.Time          // when another process may get the lease; zero if this one does not hold it
	writing bool               // the lease is being requested or renewed
	working int                // keys that are being reconciled
	idle    chan struct{}      // closed when there are none; nil while finish does not wait for that
	retry   context.CancelFunc // ends the wait for the next attempt to get the lease
}

// run is a candidate for the lease until stop is closed, also after the lease was lost. After stop,
// run waits for at most drain until no key is being reconciled, and releases the lease. The lease
// is renewed meanwhile.
func (t *term) run(stand func(context.Context), stop <-chan struct{}, drain time.Duration) {
	standing, release := context.WithCancel(context.Background())
	defer release()
	go func() {
		<-stop
		t.end()
		t.finish(drain)
		release()
	}()
	for standing.Err() == nil {
		attempt, retry := context.WithCancel(standing)
		t.mu.Lock()
		t.retry = retry
		t.mu.Unlock()
		stand(attempt)
		retry()
	}
}

// started is called when this process got the lease; ctx is done when it is lost.
func (t *term) started(ctx context.Context) {
	t.changing.Lock()
	defer t.changing.Unlock()
	if t.ending || ctx.Err() != nil { // it is called in its own goroutine, maybe after the lease was lost
		return
	}
	t.queue.log.Infow("This process has started leading", "lease", t.bucket.Name())
	t.leads = true
	if err := t.queue.reconciler.Promote(t.bucket, t.queue.Enqueue); err != nil {
		t.queue.log.Fatalw("Starting to lead failed", "lease", t.bucket.Name(), "error", err) // another process can
	}
}

// end demotes the reconciler for good.
func (t *term) end() {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.ending = true
	t.demote()
}

func (t *term) demote() {
	if t.leads {
		t.queue.log.Infow("This process has stopped leading", "lease", t.bucket.Name())
		t.leads = false
		t.queue.reconciler.Demote(t.bucket)
	}
}

// writes is called before the lease is requested or renewed, wrote after the answer.
func (t *term) writes() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writing = true
}

func (t *term) wrote(until time.Time, accepted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writing = false
	if accepted {
		t.until = until
	}
}

// holds reports whether no other process can have the lease, also after a pause.
func (t *term) holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.until)
}

// lost is called before the lease is released, and when it was lost.
func (t *term) lost() {
	t.changing.Lock()
	t.demote()
	t.changing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Time{}
}

// taken is called when a read shows that the lease is not this process's.
func (t *term) taken() {
	t.mu.Lock()
	held, retry := !t.until.IsZero(), t.retry
	t.mu.Unlock()
	if held {
		t.lost()
		retry()
	}
}

// free is called when the lease was released. It does not interrupt a write, because that would get
// the lease and release it, which calls free again.
func (t *term) free() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until.IsZero() && !t.writing && t.retry != nil {
		t.retry()
	}
}

// begin counts a key that is being reconciled, until end is called.
func (t *term) begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.working--; t.working == 0 && t.idle != nil {
			close(t.idle)
			t.idle = nil
		}
	}
}

// finish returns when no key is being reconciled, or after the limit.
func (t *term) finish(limit time.Duration) {
	t.mu.Lock()
	working, idle := t.working, make(chan struct{})
	if working > 0 {
		t.idle = idle
	}
	t.mu.Unlock()
	if working == 0 {
		return
	}
	select {
	case <-idle:
	case <-time.After(limit):
		t.queue.log.Warnw("Releasing a lease although keys of it are still being reconciled", "lease", t.bucket.Name(),
			"keys", working, "after", limit)
	}
}
