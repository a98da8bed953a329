// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// AbsenceLife is how long a live answer counts that there is no global Repository. One that is
	// created is known at once while the watch works, and after this time while it does not.
	AbsenceLife = 20 * time.Second
	// AppSecretLife is how long the GitHub App's Secret is cached, which most events of a cluster
	// need. A rotated key is used after this time at the latest, and at once if GitHub refuses the
	// old one. Other Secrets are tenants', and read each time.
	AppSecretLife = 10 * time.Second
)

// absence stores when the API server last said that there is no global Repository.
type absence struct {
	mu sync.Mutex
	at time.Time
}

func (a *absence) note(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = now
}

func (a *absence) recent(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.at.IsZero() && now.Sub(a.at) < AbsenceLife
}

// appSecret caches the App's Secret.
type appSecret struct {
	mu     sync.Mutex
	secret *corev1.Secret
	at     time.Time
	by     *Session // that has read it
}

// of returns the cached Secret, nil if it is too old. It is shared: do not change it.
func (a *appSecret) of(now time.Time) *corev1.Secret {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.secret == nil || now.Sub(a.at) >= AppSecretLife {
		return nil
	}
	return a.secret
}

func (a *appSecret) set(secret *corev1.Secret, now time.Time, by *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secret, a.at, a.by = secret, now, by
}

func (a *appSecret) readBy(s *Session) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.by == s
}

// app returns the App's Secret, cached or live, and stores its digest as Secret does.
func (s *Session) app(ctx context.Context) (*corev1.Secret, error) {
	o := &s.pool.options
	name := types.NamespacedName{Namespace: o.Namespace, Name: o.AppSecret}
	now := o.Clock.Now()
	if cached := s.pool.app.of(now); cached != nil {
		s.secret = name
		s.saw[name], _ = contentOf(cached, nil)
		return cached, nil
	}
	secret, err := s.loginSecret(ctx, name.Namespace, name.Name)
	if err != nil {
		s.pool.app.set(nil, time.Time{}, s) // it is not cached, and this session need not read it again
		return nil, err
	}
	s.pool.app.set(secret, now, s)
	return secret, nil
}

// again reports whether to log in once more, because the App's Secret has changed since it was
// cached.
func (s *Session) again(ctx context.Context, err error) bool {
	if !fault.Is(err, fault.Operator) {
		return false
	}
	tried := s.saw[s.secret]
	if !s.Outdated() {
		return false
	}
	_, _ = s.app(ctx) // after an error it counts as unchanged
	return s.saw[s.secret] != tried
}

// Outdated reports whether the session has used the App's Secret as another session had read it. If
// so, it drops the cached one, so that the next login reads it.
func (s *Session) Outdated() bool {
	o := &s.pool.options
	if s.secret != (types.NamespacedName{Namespace: o.Namespace, Name: o.AppSecret}) || s.pool.app.readBy(s) {
		return false
	}
	s.pool.app.set(nil, time.Time{}, nil)
	return true
}
