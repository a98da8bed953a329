// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"sync"
	"time"

	"knative.dev/pkg/reconciler"
)

// term is what this process has of one lease: it stands for it, it leads, it only ends what it had
// begun, or none of it.
type term struct {
	queue  *Queue
	bucket reconciler.Bucket

	changing sync.Mutex // held while the reconciler is told that it leads, or leads no more
	leads    bool       // the reconciler was told that it leads
	ending   bool       // the process was told to end

	mu      sync.Mutex
	until   time.Time          // nobody else can have got the lease before, as far as this process knows; zero if it does not hold it
	writing bool               // it asks for the lease, or renews it
	working int                // keys that are worked on
	idle    chan struct{}      // closed when there are none; nil while nobody waits for that
	retry   context.CancelFunc // ends the wait for the next attempt to get the lease
}

// run stands for the lease, whenever it was lost again, until stop is closed; then it waits for at
// most the time drain until nothing is worked on, and gives the lease back. It is renewed
// meanwhile.
func (t *term) run(stand func(context.Context), stop <-chan struct{}, drain time.Duration) {
	standing, giveBack := context.WithCancel(context.Background())
	defer giveBack()
	go func() {
		<-stop
		t.end()
		t.finish(drain)
		giveBack()
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

// started is called when the lease was got; ctx is done when it is lost.
func (t *term) started(ctx context.Context) {
	t.changing.Lock()
	defer t.changing.Unlock()
	if t.ending || ctx.Err() != nil { // it is called in a goroutine of its own, maybe after that was lost
		return
	}
	t.queue.log.Infow("This process has started leading", "lease", t.bucket.Name())
	t.leads = true
	if err := t.queue.reconciler.Promote(t.bucket, t.queue.Enqueue); err != nil {
		t.queue.log.Fatalw("Beginning to lead", "lease", t.bucket.Name(), "error", err) // another process can
	}
}

// end lets nothing new begin, for good.
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

// writes is called before this process asks for the lease, or renews it; wrote when that was
// answered.
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

// holds reports whether nobody else can have the lease, also after a pause.
func (t *term) holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.until)
}

// lost is called before the lease is given back, and when it was lost.
func (t *term) lost() {
	t.changing.Lock()
	t.demote()
	t.changing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Time{}
}

// taken is called when the lease was read and is not this process's.
func (t *term) taken() {
	t.mu.Lock()
	held, retry := !t.until.IsZero(), t.retry
	t.mu.Unlock()
	if held {
		t.lost()
		retry()
	}
}

// free is called when somebody has given the lease back. A write that is under way is not
// disturbed: it would get the lease and give it back, which is told again.
func (t *term) free() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until.IsZero() && !t.writing && t.retry != nil {
		t.retry()
	}
}

// begin counts work under the lease until its end is called.
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

// finish returns when nothing is worked on, or after the limit.
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
		t.queue.log.Warnw(
			"Giving a lease back although keys of it are still worked on",
			"lease",
			t.bucket.Name(),
			"keys",
			working,
			"after",
			limit,
		)
	}
}
