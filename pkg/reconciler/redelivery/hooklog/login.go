// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// loginWithin bounds the read of a Secret, which takes some milliseconds.
	loginWithin = 2 * time.Second
	// loginFor is how long a step may wait with the token that was read for it.
	loginFor = 10 * time.Second
)

// login is what the next step of a Repository calls its Git service with.
type login struct {
	credentials provider.Credentials
	read        time.Time // zero for none
}

// logIn reads the token of the next step unless it was just read, and returns how long the
// Repository has to wait for that. It does so before the step counts against the limits of its
// server. Few reads run at once for a Secret and for a namespace: a Secret whose read hangs delays
// only the Repositories that need it.
func (s *source) logIn(ctx context.Context, m *memory, t *target) (wait time.Duration, err error) {
	now := s.clock.Now()
	if !m.login.read.IsZero() && now.Sub(m.login.read) < loginFor {
		return 0, nil
	}
	wait, leave := s.limits.enter(loginOf(t.owner), []limit{
		{name: "secret " + t.service.Token.Namespace + "/" + t.service.Token.Name, atOnce: 1},
		{name: "secrets for " + t.owner.Namespace, atOnce: atOnce},
	}, now)
	if wait > 0 {
		return wait, nil
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, loginWithin)
	defer cancel()
	credentials, err := s.credentials.Read(ctx, t.repository, t.service, t.base, s.settings())
	m.apiServerDown = fault.Is(err, fault.Transient)
	if err != nil {
		return 0, err
	}
	m.login = login{credentials, now}
	return 0, nil
}

// loginOf is the key by which a Repository waits for its Secret.
func loginOf(owner types.NamespacedName) string { return "login " + owner.String() }
