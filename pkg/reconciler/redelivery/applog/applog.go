// SPDX-License-Identifier: Apache-2.0

// Package applog finds the deliveries of the GitHub App that were missed, because no receiver was
// there or because it answered 503, and asks GitHub to send them again. GitHub never does so by
// itself (docs/adr/0030).
//
// It writes no event: a delivery that was sent again comes to a receiver, which knows whether it is
// recorded already. So nothing here has to be right for an event not to run twice; asking once too
// often costs a call.
package applog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// lookEvery is the time between two looks while nothing happens.
	lookEvery = 5 * time.Minute
	// soon is the time between two looks while the outcome of a redelivery is not known, and for
	// settleFor after a receiver said that deliveries may have been missed: the log shows an
	// attempt when it has ended.
	soon      = 10 * time.Second
	settleFor = time.Minute
	// settleAfter is how long the first look waits after that.
	settleAfter = 2 * time.Second
	// A look that failed is repeated after retryLook, twice that and so on, at most
	// retryLookAtMost: what was missed is to be asked for within a minute of an outage's end, and
	// the watch that tells of that may be as late.
	retryLook       = 5 * time.Second
	retryLookAtMost = 20 * time.Second
	// secretWithin bounds the read of the App's Secret: one that hangs is tried again like one that
	// fails.
	secretWithin = 5 * time.Second
	// atLeast is between two reconciles, whatever is due.
	atLeast = 100 * time.Millisecond
	// sentAgainFor is how long GitHub sends a delivery again; it refuses older ones
	// (https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks).
	sentAgainFor = 3 * 24 * time.Hour
	// reconcileTimeout ends one reconcile. A look that is ended begins anew, so a slow service must
	// not be stopped while it answers: 300 pages, four seconds each.
	reconcileTimeout = 20 * time.Minute
)

// Reconciler implements knative's controller.Reconciler and reconciler.LeaderAware. Its one key is
// the App's.
type Reconciler struct {
	pkgreconciler.LeaderAwareFuncs

	key     types.NamespacedName // of the Secret with the App's credentials
	open    func(baseURL string, credentials provider.Credentials) (provider.DeliveryLog, error)
	baseURL func() string
	store   store
	secrets typedcorev1.SecretsGetter
	claims  listers.RepositoryClaimNamespaceLister
	// known reports whether claims has been filled.
	known        func() bool
	repositories paclisters.RepositoryLister
	// namespaces are those that are served.
	namespaces func() config.Namespaces
	recorder   record.EventRecorder
	clock      clock.PassiveClock
	logger     *zap.SugaredLogger
	metrics    *metrics

	// What follows belongs to whoever reconciles the key, which is one at a time. It is advice, and
	// lost with the lease.
	ledger ledger
	line   line
	looked time.Time // zero for never
	ended  time.Time // when the last look had
	pages  int       // that the next look has at least
	failed int       // looks that failed, in a row

	mu sync.Mutex
	// heard is when a receiver said that deliveries may have been missed.
	heard time.Time
}

var (
	_ controller.Reconciler     = (*Reconciler)(nil)
	_ pkgreconciler.LeaderAware = (*Reconciler)(nil)
)

// Heard notes that a receiver says that deliveries may have been missed. It returns after which
// time the key is to be reconciled.
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

// Reconcile looks for missed deliveries if it is time for that, and else asks for one of them.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil || name != r.key.Name || namespace != r.key.Namespace {
		return nil // there is no other key
	}
	if !r.IsLeaderFor(r.key) {
		r.ledger, r.line, r.looked, r.failed = ledger{}, newLine(), time.Time{}, 0
		r.metrics.missing(0)
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	log, err := r.connect(ctx)
	if err == nil && log == nil {
		return backoff.Requeue(fault.Throttledf("NoApp", lookEvery, "there is no App"))
	}
	if err == nil {
		err = r.step(ctx, log)
	}
	return backoff.Requeue(r.next(err))
}

// connect returns the log of the App's deliveries, nil when there is no App.
func (r *Reconciler) connect(ctx context.Context) (provider.DeliveryLog, error) {
	ctx, cancel := context.WithTimeout(ctx, secretWithin)
	defer cancel()
	secret, err := r.secrets.Secrets(r.key.Namespace).Get(ctx, r.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading the GitHub App's secret: %w", err))
	}
	login, err := credentials.App(secret)
	if err != nil {
		return nil, err
	}
	return r.open(r.baseURL(), login)
}

// step looks or asks.
func (r *Reconciler) step(ctx context.Context, log provider.DeliveryLog) error {
	if heard := r.lastHeard(); heard.After(r.line.there) {
		r.line.heard(heard)
		r.failed = 0 // what stood in the way may be over
	}
	if !r.known() {
		return fault.Throttledf("NoClaims", time.Second, "the claims of Repositories are not known yet")
	}
	if broken := r.namespaces().Broken; broken != "" { // what is missed would be dropped as nobody's
		return fault.Throttledf("NamespacesUnknown", soon, "serve-namespaces cannot be read: %s", broken)
	}
	now := r.clock.Now()
	if !r.nextLook(now).After(now) {
		r.looked = now
		err := r.look(ctx, log)
		r.metrics.looked(ctx, err)
		if err != nil {
			return err
		}
		r.failed, r.ended = 0, r.clock.Now()
		r.metrics.missing(r.ledger.open())
	}
	if m, at := r.line.next(r.ledger.Missed, now); m != nil && !at.After(now) {
		return r.ask(ctx, log, m)
	}
	return nil
}

// ask asks for one redelivery. That it was asked for is not written down: the log will have it.
func (r *Reconciler) ask(ctx context.Context, log provider.DeliveryLog, m *missed) error {
	r.line.last = r.clock.Now()
	err := log.Redeliver(ctx, m.ID)
	rejected := fault.Rejected(err) // 400, 422
	if fault.Is(err, fault.Ignored) || rejected && r.clock.Since(m.First) > sentAgainFor {
		r.line.gone[m.GUID] = true // the next look gives it up
		return nil
	}
	r.line.took(m, r.clock.Now()) // also one that failed waits for its turn
	if rejected {                 // this one, which says nothing of others
		r.logger.Infow("asking for a delivery to be sent again is refused", "delivery", m.GUID, "error", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	r.metrics.asked(ctx)
	r.logger.Infow("asked for a delivery to be sent again", "delivery", m.GUID, "first", m.First, "tries", m.Tries)
	return nil
}

// nextLook is when the log is to be read again.
func (r *Reconciler) nextLook(now time.Time) time.Time {
	switch {
	case r.looked.IsZero():
		return now
	case r.failed > 0:
		return r.looked.Add(retryWait(r.failed))
	}
	rested := r.ended.Add(max(soon*time.Duration(r.pages)/manyPages, min(soon, r.ended.Sub(r.looked))))
	next := latest(rested, r.looked.Add(min(lookEvery, soon*time.Duration(1+r.pages/manyPages))))
	settled := r.line.there.Add(settleAfter)
	if r.looked.Before(settled) { // nobody has looked since a receiver said that it is worth it
		return latest(rested, earliest(settled, next)) // others that say so meanwhile put off nothing
	}
	if r.line.waits(r.ledger.Missed, now) || now.Before(r.line.there.Add(settleFor)) {
		return next
	}
	return r.looked.Add(lookEvery)
}

func retryWait(failed int) time.Duration {
	return min(retryLookAtMost, retryLook<<min(failed-1, 10))
}

// next returns when the key is to be reconciled again, as what backoff.Requeue takes.
func (r *Reconciler) next(err error) error {
	now := r.clock.Now()
	f := fault.Of(err)
	switch {
	case f == nil:
	case f.Class == fault.Throttled && f.RetryAfter > 0:
		r.looked = time.Time{} // as if there had been no look
		return err
	default:
		r.failed++
		r.looked = now
		r.logger.Warnw("looking for missed deliveries failed", "error", err.Error(), "times", r.failed)
		wait := retryWait(r.failed)
		if f.Class == fault.Operator {
			wait = fault.OperatorRetry
		}
		return fault.Throttledf("NextLook", wait, "looking for missed deliveries failed")
	}
	at := r.nextLook(now)
	if m, due := r.line.next(r.ledger.Missed, now); m != nil && due.Before(at) {
		at = due
	}
	return fault.Throttledf("NextLook", max(at.Sub(now), atLeast), "the next look for missed deliveries")
}

// promoted enqueues the key where it is led.
func (r *Reconciler) promoted(b pkgreconciler.Bucket, enqueue func(pkgreconciler.Bucket, types.NamespacedName)) error {
	enqueue(b, r.key)
	return nil
}
