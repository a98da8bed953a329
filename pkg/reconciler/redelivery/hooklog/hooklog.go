// SPDX-License-Identifier: Apache-2.0

// Package hooklog reads GitLab's logs of the webhooks of Repositories and has the undelivered ones
// resent (docs/adr/0031). A condition of the Repository says when GitLab does not call its webhook,
// or when a head has no record.
//
// What a process knows the next one reads again from the log. Only which deliveries were given up
// is stored.
package hooklog

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/plumbline-ci/plumbline/pkg/store/history"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

const (
	// deniedEvery is the time between two reads where the token may not read the log: a user has to
	// change that.
	deniedEvery = 30 * time.Minute
	// idleEvery is how soon a changed setting or a new claim shows. It costs no call.
	idleEvery = 15 * time.Second
	// settleAfter is how soon after the last resend the heads are compared.
	settleAfter = 2 * time.Second
	// retryFirst is the wait after a step that GitLab failed. It doubles up to retryAtMost.
	retryFirst  = 30 * time.Second
	retryAtMost = time.Hour
	// stepTimeout ends one step. The longest is a read of maxPages pages.
	stepTimeout = 2 * time.Minute
)

// source implements redelivery.Source. A key is a Repository's.
type source struct {
	// service is the Git service, namespace Plumbline's own, and global the name of the Repository
	// there that completes all others.
	service           provider.Provider
	namespace, global string
	settings          func() *config.Config
	credentials       credentials.Reader
	// events reads GitEvents live.
	events       history.Lister
	repositories paclisters.RepositoryLister
	claims       listers.RepositoryClaimNamespaceLister
	condition    repositories.Condition // Webhook
	givenUp      givenUp
	recorder     record.EventRecorder
	clock        clock.PassiveClock
	logger       *zap.SugaredLogger
	metrics      *redelivery.Metrics
	limits       *limits

	mu sync.Mutex
	// known is what this process knows of webhooks. Only the step of its key changes a memory.
	known map[types.NamespacedName]*memory
}

// memory is what a process knows of a Repository's webhooks. A process that has lost it makes a few
// calls more.
type memory struct {
	generation int64 // of the Repository as it was at the last step
	schedule   redelivery.Schedule
	// sendNext is set when the last step was a read: a resend may come before the next one.
	sendNext bool
	// apiServerDown is set when the last step could not read its Secret.
	apiServerDown bool
	login         login // for the next step
	hooks         webhooks
	heads         heads
}

func (s *source) memoryOf(owner types.NamespacedName) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.known[owner]
	if !known {
		m = &memory{hooks: webhooks{queue: redelivery.NewQueue()}}
		s.known[owner] = m
	}
	return m
}

// Keys returns the Repositories of the Git service.
func (s *source) Keys() (all []types.NamespacedName) {
	cached, _ := s.repositories.List(labels.Everything()) // a cache's list cannot fail
	for _, repository := range cached {
		if s.serves(repository) {
			all = append(all, types.NamespacedName{Namespace: repository.Namespace, Name: repository.Name})
		}
	}
	return all
}

// Forget implements redelivery.Source.
func (s *source) Forget(owner types.NamespacedName) {
	s.mu.Lock()
	delete(s.known, owner)
	s.mu.Unlock()
	s.limits.forget(owner.String())
	s.limits.forget(loginOf(owner))
	s.metrics.Forget(owner)
}

// Step implements redelivery.Source.
func (s *source) Step(ctx context.Context, owner types.NamespacedName, signalled time.Time) (time.Duration, bool) {
	repository, err := s.repositories.Repositories(owner.Namespace).Get(owner.Name)
	if err != nil || !s.serves(repository) { // a cache's error is that it is not there
		s.Forget(owner)
		return 0, false // a change of the Repository wakes this key
	}
	t, err := s.target(repository)
	if err != nil || t == nil {
		return idleEvery, true // not claimed, or a wrong setting that another condition reports
	}
	m := s.memoryOf(owner)
	s.learn(m, repository, signalled)
	now := s.clock.Now()
	if wait := m.due(now).Sub(now); wait > 0 {
		return wait, true
	}
	wait, err := s.logIn(ctx, m, t)
	if err != nil {
		return s.after(m, t, err), true
	}
	var leave func()
	if wait == 0 {
		wait, leave = s.limits.enter(owner.String(), t.limits(), s.clock.Now())
	}
	if wait > 0 {
		return wait, true
	}
	defer leave()
	return s.after(m, t, s.step(ctx, m, t)), true
}

// learn takes what has happened since the last step.
func (s *source) learn(m *memory, repository *pacv1alpha1.Repository, signalled time.Time) {
	if m.generation != repository.Generation {
		m.generation, m.sendNext, m.login = repository.Generation, false, login{}
		m.schedule = redelivery.Schedule{Signalled: m.schedule.Signalled}
	}
	if m.schedule.Signal(signalled) {
		m.hooks.signal(signalled)
		m.heads.wanted = true
	}
}

// due returns when the next step is due. After a failure nothing is resent before a read succeeds.
func (m *memory) due(now time.Time) time.Time {
	due := m.schedule.Due(now, false)
	if _, next, at := m.hooks.next(now); next != nil && m.schedule.Failures == 0 && at.Before(due) {
		return at
	}
	return due
}

// step reads the logs, or has one delivery resent. When both are due they alternate: where many
// Repositories share a token, a read is due each time that the step may run.
func (s *source) step(ctx context.Context, m *memory, t *target) error {
	log, err := s.service.Hooks(t.base, t.project, m.login.credentials) // it makes no call
	m.login = login{}
	if err != nil {
		return err
	}
	now := s.clock.Now()
	in, next, at := m.hooks.next(now)
	mayRead := !m.schedule.Due(now, false).After(now)
	maySend := next != nil && !at.After(now) && m.schedule.Failures == 0
	switch {
	case maySend && (m.sendNext || !mayRead):
		m.sendNext = false
		return s.resend(ctx, m, view{in, t, log}, next)
	case mayRead:
		every, err := s.look(ctx, m, t, log)
		s.metrics.Read(ctx, err)
		if m.sendNext = err == nil; m.sendNext {
			m.schedule.Read(now, s.clock.Now(), every)
		}
		return err
	}
	return nil
}

// after returns how long the key waits after a step.
func (s *source) after(m *memory, t *target, err error) time.Duration {
	now := s.clock.Now()
	if err != nil {
		first, atMost := retryFirst, retryAtMost
		if m.apiServerDown {
			first, atMost = redelivery.RetryFirst, redelivery.RetryAtMost
		}
		m.schedule.Failed(now, err, first, atMost)
		s.logger.Infow("reading the log of a webhook failed", "repository", t.owner.String(), "error", err.Error())
	} else {
		m.schedule.Failures = 0
	}
	s.metrics.Missed(t.owner, len(m.hooks.missed()))
	return m.due(now).Sub(now)
}

// resend has a delivery sent again.
func (s *source) resend(ctx context.Context, m *memory, v view, d *redelivery.Delivery) error {
	if s.old(d.First) {
		v.hook.expire(d.GUID, d.FirstID, true)
		m.schedule.Now() // the read gives it up, if it has not succeeded since
		return nil
	}
	status, err := v.log.Resend(ctx, v.hook.id, d.ID)
	now := s.clock.Now()
	if fault.Is(err, fault.Ignored) {
		return s.giveUp(ctx, v, []redelivery.Delivery{*d}, "GitLab does not send it again any more")
	}
	if f := fault.Of(err); f != nil {
		if !sendsNothing(f) { // others come first now, and it may have been sent nevertheless
			m.hooks.queue.Requested(d, now)
			v.hook.stale = true
		}
		return err
	}
	m.hooks.resent(v.hook, d, status, now)
	if m.heads.wanted && len(m.hooks.missed()) == 0 {
		m.schedule.At(now.Add(settleAfter)) // what no log has can be seen now
	}
	s.metrics.Resent(ctx, (&provider.Attempt{Status: status}).Succeeded())
	s.logger.Infow("had a delivery resent", "repository", v.target.owner.String(), "delivery", d.GUID, "response", status)
	return nil
}

// sendsNothing reports whether GitLab refuses to resend anything. Other failures may concern the
// one delivery.
func sendsNothing(f *fault.Error) bool {
	switch f.Reason {
	case "HookPaused", fault.ReasonPermissionMissing, fault.ReasonCredentialsRefused:
		return true
	}
	return f.Class == fault.Throttled
}
