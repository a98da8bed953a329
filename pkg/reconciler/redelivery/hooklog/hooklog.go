// SPDX-License-Identifier: Apache-2.0

// Package hooklog looks after the webhooks of Repositories whose Git service is no GitHub App's: it
// tells in a condition when the service does not call them any more, finds the deliveries that were
// missed, because no receiver was there or because it answered 503, and has the service send them
// again, which it never does by itself (docs/adr/0031).
//
// It writes no event: a delivery that was sent again comes to a receiver, which knows whether it is
// recorded already. What a process knows is read again from the service's log by the next one; only
// which deliveries are given up is written down.
package hooklog

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const (
	// lookEvery is the time between two looks at a webhook while nothing happens. Where the token
	// may not look, somebody has to change that, and deniedEvery is enough.
	lookEvery   = 5 * time.Minute
	deniedEvery = 30 * time.Minute
	// idleEvery is how soon it is seen that a setting has changed or a claim was made. It costs no
	// call.
	idleEvery = 15 * time.Second
	// settleAfter is how long the first look waits after a receiver said that deliveries may have
	// been missed. For settleFor after that there is a look each settleEvery: the log shows an
	// attempt when it has ended, after 10 s at most.
	settleAfter = 2 * time.Second
	settleEvery = 15 * time.Second
	settleFor   = time.Minute
	// A step that failed is repeated after retryFirst, twice that and so on, at most retryAtMost.
	retryFirst  = 30 * time.Second
	retryAtMost = time.Hour
	// reconcileTimeout ends one step. The longest is a look at maxPages pages.
	reconcileTimeout = 2 * time.Minute
)

// Reconciler implements knative's controller.Reconciler and reconciler.LeaderAware. A key is a
// Repository's.
type Reconciler struct {
	pkgreconciler.LeaderAwareFuncs

	// service is the Git service, namespace Plumbline's own, and global the name of the Repository
	// there that completes all others.
	service           provider.Provider
	namespace, global string
	settings          func() *config.Config
	credentials       credentials.Reader
	// events reads GitEvents live.
	events     history.Lister
	cached     caches
	conditions conditions
	givenUp    givenUp
	recorder   record.EventRecorder
	clock      clock.PassiveClock
	logger     *zap.SugaredLogger
	metrics    *metrics
	pace       *pace

	mu sync.Mutex
	// known is what this process knows of webhooks. A memory is changed by whoever reconciles its
	// key alone.
	known map[types.NamespacedName]*memory
	// heard is when a receiver said that deliveries may have been missed.
	heard time.Time
}

// caches are what others have read; nil is for what they do not have.
type caches struct {
	repository   func(types.NamespacedName) *pacv1alpha1.Repository
	repositories func() []*pacv1alpha1.Repository
	// claim takes the name of a claim in Plumbline's namespace.
	claim func(name string) *v1alpha1.RepositoryClaim
}

// memory is what a process knows of a Repository's webhook. All of it is advice.
type memory struct {
	generation int64     // of the Repository as it was at the last step
	heard      time.Time // that a look was made for
	look       time.Time // when the next is due
	looked     bool      // the last step was a look, and something may be sent before the next one
	failed     int       // steps that failed, in a row
	away       bool      // the last of these found no API server
	login      login     // for the next step
	logs       logs
	heads      heads
}

var (
	_ controller.Reconciler     = (*Reconciler)(nil)
	_ pkgreconciler.LeaderAware = (*Reconciler)(nil)
)

// Heard notes that a receiver says that deliveries may have been missed, and returns after which
// time all keys are to be reconciled.
func (r *Reconciler) Heard() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = r.clock.Now()
	return settleAfter
}

func (r *Reconciler) lastHeard() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

func (r *Reconciler) memoryOf(owner types.NamespacedName) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, known := r.known[owner]
	if !known {
		m = &memory{}
		r.known[owner] = m
	}
	return m
}

func (r *Reconciler) forget(owner types.NamespacedName) {
	r.mu.Lock()
	delete(r.known, owner)
	r.mu.Unlock()
	r.pace.forget(owner.String())
	r.pace.forget(loginOf(owner))
	r.metrics.forget(owner)
}

// Reconcile looks at the webhook of a Repository if it is time for that, and else has one missed
// delivery sent again.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil // no Repository has such a key
	}
	owner := types.NamespacedName{Namespace: namespace, Name: name}
	if !r.IsLeaderFor(owner) {
		r.forget(owner)
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	repository := r.cached.repository(owner)
	if repository == nil || !r.serves(repository) {
		r.forget(owner)
		return nil // a change of the Repository wakes this key
	}
	t, err := r.target(repository)
	if err != nil || t == nil {
		return wait("NoWebhook", idleEvery) // not claimed, or settings that something else tells of
	}
	m := r.memoryOf(owner)
	r.learn(m, repository)
	if left := m.due(r.clock.Now()).Sub(r.clock.Now()); left > 0 {
		return wait("NextStep", left)
	}
	left, err := r.logIn(ctx, m, t)
	if err != nil {
		return r.after(m, t, err)
	}
	var leave func()
	if left == 0 {
		left, leave = r.pace.enter(owner.String(), t.lanes(), r.clock.Now())
	}
	if left > 0 {
		return wait("Paced", left)
	}
	defer leave()
	return r.after(m, t, r.step(ctx, m, t))
}

// learn takes note of what has happened since the last step.
func (r *Reconciler) learn(m *memory, repository *pacv1alpha1.Repository) {
	now := r.clock.Now()
	if m.generation != repository.Generation {
		m.generation, m.look, m.failed, m.looked, m.login = repository.Generation, now, 0, false, login{}
	}
	if heard := r.lastHeard(); heard.After(m.heard) {
		m.heard, m.failed = heard, 0 // what stood in the way may be over
		m.look = earliest(m.look, heard.Add(settleAfter))
		m.logs.heard(heard)
		m.heads.wanted = true
	}
}

// due is when there is something to do.
func (m *memory) due(now time.Time) time.Time {
	if m.failed > 0 {
		return m.look // nothing is sent again until a look succeeds
	}
	if _, _, at := m.logs.next(now); !at.IsZero() && at.Before(m.look) {
		return at
	}
	return m.look
}

// step looks, or has one delivery sent again. When both are due they take turns: whoever waits for
// long for a turn, because many share its token, finds a look due each time.
func (r *Reconciler) step(ctx context.Context, m *memory, t *target) error {
	log, err := r.service.Hooks(t.base, t.project, m.login.credentials) // it makes no call
	m.login = login{}
	if err != nil {
		return err
	}
	now := r.clock.Now()
	in, missing, at := m.logs.next(now)
	mayLook, maySend := !m.look.After(now), missing != nil && !at.After(now) && m.failed == 0
	switch {
	case maySend && (m.looked || !mayLook):
		m.looked = false
		return r.resend(ctx, m, view{in, t, log}, missing)
	case mayLook:
		return r.lookNow(ctx, m, t, log)
	}
	return nil
}

// lookNow looks, and notes when to look again.
func (r *Reconciler) lookNow(ctx context.Context, m *memory, t *target, log provider.HookLog) error {
	now := r.clock.Now()
	next, err := r.look(ctx, m, t, log)
	r.metrics.looked(ctx, err)
	m.looked = err == nil
	if err != nil {
		return err
	}
	m.look = r.clock.Now().Add(next)
	if next <= lookEvery && now.Before(m.heard.Add(settleFor)) {
		m.look = earliest(m.look, r.clock.Now().Add(settleEvery))
	}
	return nil
}

// after returns when the key is to be reconciled again, as what knative's queue takes.
func (r *Reconciler) after(m *memory, t *target, err error) error {
	now := r.clock.Now()
	if f := fault.Of(err); f != nil {
		m.failed++
		m.look = now.Add(min(retryAtMost, retryFirst<<min(m.failed-1, 10)))
		switch {
		case m.away: // deliveries are missed meanwhile, and the watch that tells of the end may be up to a minute late
			m.look = now.Add(settleEvery)
		case f.Class == fault.Throttled && f.RetryAfter > 0:
			m.look = now.Add(f.RetryAfter)
		}
		r.logger.Infow("looking at a webhook failed", "repository", t.owner.String(), "error", err.Error(), "times", m.failed)
	} else {
		m.failed = 0
	}
	r.metrics.missing(t.owner, m.logs.missing())
	return wait("NextStep", m.due(now).Sub(now))
}

// atLeast is between two reconciles of a key, whatever is due.
const atLeast = 100 * time.Millisecond

func wait(reason string, left time.Duration) error {
	return backoff.Requeue(fault.Throttledf(reason, max(left, atLeast), "the next step is not due"))
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// promoted enqueues the Repositories of a bucket where it is led.
func (r *Reconciler) promoted(b pkgreconciler.Bucket, enqueue func(pkgreconciler.Bucket, types.NamespacedName)) error {
	r.each(func(owner types.NamespacedName) { enqueue(b, owner) })
	return nil
}

// each calls for all Repositories whose webhooks are looked after.
func (r *Reconciler) each(do func(owner types.NamespacedName)) {
	for _, repository := range r.cached.repositories() {
		if r.serves(repository) {
			do(types.NamespacedName{Namespace: repository.Namespace, Name: repository.Name})
		}
	}
}
