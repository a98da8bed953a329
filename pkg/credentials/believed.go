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
	// AbsenceBelieved is how long a live answer that there is no global Repository counts. One that
	// is created is seen at once while the watch works; so late only while it does not.
	AbsenceLife = 20 * time.Second
	// AppBelieved is how long the GitHub App's Secret counts as it was read: most events of a
	// cluster need the same one. A rotated key is used so much later at most, or at once if GitHub
	// refuses the old one. Other Secrets are tenants', and read each time.
	AppSecretLife = 10 * time.Second
)

// absence is when the API server has said last that there is no global Repository.
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

// appSecret is the App's Secret as it was read last.
type appSecret struct {
	mu     sync.Mutex
	secret *corev1.Secret
	at     time.Time
	by     *Session // who read it
}

// of returns the Secret if it was read a moment ago. It is shared: it is not to be changed.
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

// app returns the App's Secret, and notes what it was as Secret does.
func (s *Session) app(ctx context.Context) (*corev1.Secret, error) {
	o := &s.pool.options
	name := types.NamespacedName{Namespace: o.Namespace, Name: o.AppSecret}
	now := o.Clock.Now()
	if believed := s.pool.app.of(now); believed != nil {
		s.secret = name
		s.saw[name], _ = contentOf(believed, nil)
		return believed, nil
	}
	secret, err := s.loginSecret(ctx, name.Namespace, name.Name)
	if err != nil {
		s.pool.app.set(nil, time.Time{}, s) // nobody believes it, and this session need not read it again
		return nil, err
	}
	s.pool.app.set(secret, now, s)
	return secret, nil
}

// again reports whether logging in is to be tried once more: the App's Secret holds something else
// now than a moment ago.
func (s *Session) again(ctx context.Context, err error) bool {
	if !fault.Is(err, fault.Operator) {
		return false
	}
	tried := s.saw[s.secret]
	if !s.Outdated() {
		return false
	}
	_, _ = s.app(ctx) // without an answer it is not another
	return s.saw[s.secret] != tried
}

// Outdated reports whether what the Git service has refused was a login with the App's Secret as
// another session had read it. It is not believed any more: whoever tries again reads it.
func (s *Session) Outdated() bool {
	o := &s.pool.options
	if s.secret != (types.NamespacedName{Namespace: o.Namespace, Name: o.AppSecret}) || s.pool.app.readBy(s) {
		return false
	}
	s.pool.app.set(nil, time.Time{}, nil)
	return true
}
