// SPDX-License-Identifier: Apache-2.0

// Package applog reads GitHub's log of the deliveries to the App and requests the undelivered ones
// again (docs/adr/0030).
package applog

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

const (
	// secretWithin bounds the read of the App's Secret: one that hangs is repeated like one that
	// fails.
	secretWithin = 5 * time.Second
	// resentFor is how long GitHub sends a delivery again; it refuses older ones
	// (https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks).
	resentFor = 3 * 24 * time.Hour
	// stepTimeout ends one step. A read that is ended starts over, so a slow service must not be
	// stopped while it answers: 300 pages, four seconds each.
	stepTimeout = 20 * time.Minute
	// requestEvery is the time between two requests. Each costs 5 of the 900 points that GitHub
	// grants within a minute, and reads take the rest. The provider waits for other limits.
	requestEvery = 500 * time.Millisecond
	// probeEvery is the same while no receiver seems to be reachable: a request finds out.
	probeEvery = time.Minute
)

// source implements redelivery.Source. Its one key is the App's.
type source struct {
	key     types.NamespacedName // of the Secret with the App's credentials
	open    func(baseURL string, credentials provider.Credentials) (provider.DeliveryLog, error)
	baseURL func() string
	store   store
	secrets typedcorev1.SecretsGetter
	claims  listers.RepositoryClaimNamespaceLister
	// known reports whether claims has been filled.
	known func() bool
	// repositories are those that are served, everywhere those of all namespaces.
	repositories paclisters.RepositoryLister
	everywhere   func() []*pacv1alpha1.Repository
	settings     func() *config.Config
	recorder     record.EventRecorder
	clock        clock.PassiveClock
	logger       *zap.SugaredLogger
	metrics      *redelivery.Metrics

	memory
}

// memory is what the process knows of the log. A process that has lost it makes a few calls more.
type memory struct {
	ledger   ledger
	schedule redelivery.Schedule
	queue    redelivery.Queue
	// gone are the deliveries that GitHub does not send again. reported are those of them whose
	// owner has got an Event. Both are cleared when the ledger is stored.
	gone, reported map[string]bool
	// lastRequest is when the last request began.
	lastRequest time.Time
	// unreachable is set when the newest attempt was requested, and has failed.
	unreachable bool
}

func newMemory() memory {
	return memory{queue: redelivery.NewQueue(), gone: map[string]bool{}, reported: map[string]bool{}}
}

// Keys returns the App's key.
func (s *source) Keys() []types.NamespacedName { return []types.NamespacedName{s.key} }

// Forget implements redelivery.Source.
func (s *source) Forget(key types.NamespacedName) {
	s.memory = newMemory()
	s.metrics.Missed(key, 0)
}

// Step implements redelivery.Source.
func (s *source) Step(ctx context.Context, key types.NamespacedName, signalled time.Time) (time.Duration, bool) {
	if key != s.key {
		return 0, false
	}
	log, err := s.connect(ctx)
	if err == nil && log == nil {
		return redelivery.ReadEvery, true // there is no App
	}
	if err == nil {
		err = s.step(ctx, log, signalled)
	}
	return s.next(err), true
}

// connect returns the log of the App's deliveries, nil when there is no App.
func (s *source) connect(ctx context.Context) (provider.DeliveryLog, error) {
	ctx, cancel := context.WithTimeout(ctx, secretWithin)
	defer cancel()
	secret, err := s.secrets.Secrets(s.key.Namespace).Get(ctx, s.key.Name, metav1.GetOptions{})
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
	return s.open(s.baseURL(), login)
}

// step reads the log if that is due, and requests a delivery if one is due.
func (s *source) step(ctx context.Context, log provider.DeliveryLog, signalled time.Time) error {
	if s.schedule.Signal(signalled) {
		s.queue.Recovered, s.unreachable = signalled, false
	}
	if !s.known() {
		return fault.Throttledf(reasonNoClaims, time.Second, "the claims of Repositories are not known yet")
	}
	if broken := s.settings().Namespaces.Broken; broken != "" { // all deliveries would seem to be of other installations
		return fault.Throttledf(reasonNamespacesUnknown, 10*time.Second, "serve-namespaces cannot be read: %s", broken)
	}
	now := s.clock.Now()
	if !s.schedule.Due(now, s.queue.Pending(s.ledger.Missed, now)).After(now) {
		err := s.read(ctx, log)
		s.metrics.Read(ctx, err)
		if err != nil {
			return err
		}
		s.schedule.Read(now, s.clock.Now(), redelivery.ReadEvery)
		s.metrics.Missed(s.key, s.ledger.wanted())
	}
	if d, at := s.nextRequest(now); d != nil && !at.After(now) {
		return s.request(ctx, log, d)
	}
	return nil
}

// nextRequest returns the delivery to request next, and when; nil if there is none.
func (s *source) nextRequest(now time.Time) (*redelivery.Delivery, time.Time) {
	free := s.lastRequest.Add(requestEvery)
	if s.unreachable {
		free = s.lastRequest.Add(probeEvery)
	}
	return s.queue.Next(s.ledger.Missed, now, func(d *redelivery.Delivery) (time.Time, bool) {
		return free, !s.gone[d.GUID]
	})
}

// request requests one delivery. That is stored nowhere: the log will have the attempt.
func (s *source) request(ctx context.Context, log provider.DeliveryLog, d *redelivery.Delivery) error {
	s.lastRequest = s.clock.Now()
	err := log.Redeliver(ctx, d.ID)
	rejected := fault.Rejected(err) // 400, 422
	if fault.Is(err, fault.Ignored) || rejected && s.clock.Since(d.First) > resentFor {
		s.gone[d.GUID] = true // the next read gives it up
		return nil
	}
	s.queue.Requested(d, s.clock.Now()) // a request that failed counts as well
	if rejected {                       // this delivery, which says nothing about others
		s.logger.Infow("GitHub refuses to send a delivery again", "delivery", d.GUID, "error", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	s.metrics.Requested(ctx)
	s.logger.Infow("requested a delivery again", "delivery", d.GUID, "first", d.First, "tries", d.Tries)
	return nil
}

// next returns how long the key waits after a step.
func (s *source) next(err error) time.Duration {
	now := s.clock.Now()
	if f := fault.Of(err); f != nil {
		if f.Class == fault.Throttled && f.RetryAfter > 0 {
			s.schedule.Now()
			return f.RetryAfter
		}
		first, atMost := redelivery.RetryFirst, redelivery.RetryAtMost
		if f.Class == fault.Operator {
			first, atMost = fault.OperatorRetry, fault.OperatorRetry
		}
		s.schedule.Failed(now, err, first, atMost)
		s.logger.Warnw("finding undelivered webhooks failed", "error", err.Error(), "times", s.schedule.Failures)
		return s.schedule.Due(now, false).Sub(now)
	}
	at := s.schedule.Due(now, s.queue.Pending(s.ledger.Missed, now))
	if d, due := s.nextRequest(now); d != nil && due.Before(at) {
		at = due
	}
	return at.Sub(now)
}
