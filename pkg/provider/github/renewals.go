// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// renewEvery is how often an installation's token may be minted again because a call was refused. A
// token has the permissions that the installation had when it was minted, and is valid for an hour.
// When an administrator grants a missing permission, the next calls must not wait until the token
// expires.
const renewEvery = time.Minute

// renewals limits these mints for one installation. It is safe for concurrent use.
type renewals struct {
	mu     sync.Mutex
	tried  time.Time // when a token was last minted again because of a refusal
	helped time.Time // when that helped: older tokens of the installation's other repositories lack the same
	has    string    // the permissions of the newest token
}

// mayRenew reports whether a token that was minted at since may be replaced now.
func (r *renewals) mayRenew(since, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case since.Before(r.helped):
		return true
	case now.Sub(since) < renewEvery, !r.tried.IsZero() && now.Sub(r.tried).Abs() < renewEvery:
		return false
	}
	r.tried = now
	return true
}

// recordHelp records that a call succeeded with a token that was minted at since.
func (r *renewals) recordHelp(since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since.After(r.helped) {
		r.helped = since
	}
}

// recordGrant records the permissions of a token that was minted at since. If they have changed,
// older tokens may lack some, and are replaced before a call of theirs is refused.
func (r *renewals) recordGrant(permissions string, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.has != "" && r.has != permissions && since.After(r.helped) {
		r.helped = since
	}
	r.has = permissions
}

// renew replaces a token with which a call was refused. It reports whether there is another token;
// if none can be minted, the refused one stays.
func (m *minter) renew(ctx context.Context, refused string) bool {
	m.mu.Lock()
	if m.cached.Value != refused {
		defer m.mu.Unlock()
		return m.cached.Value != ""
	}
	if !m.renewals.mayRenew(m.since, m.now()) {
		m.mu.Unlock()
		return false
	}
	run := m.join(ctx)
	m.mu.Unlock()
	_, err := run.wait(ctx)
	return err == nil
}

// recordHelp records that the current token was accepted where the one before was not.
func (m *minter) recordHelp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewals.recordHelp(m.since)
}

// missesGrant reports whether a call was refused for something that the installation may have been
// granted since its token was minted: a permission, the end of a suspension, or the repository
// itself. Any other 404 is about something in the repository.
func missesGrant(req *http.Request, err error) bool {
	switch provider.StatusCode(err) {
	case http.StatusForbidden:
		f := fault.Of(err)
		return f.Class == fault.Operator && f.Reason == fault.ReasonPermissionMissing
	case http.StatusNotFound:
		_, path, _ := strings.Cut(req.URL.Path, "/repos/")
		return strings.Count(path, "/") == 1
	}
	return false
}

// repeat repeats a call with the new token. If the old token did not cover the repository, earlier
// 404s are not reliable: then the whole attempt is repeated.
func (a *authenticated) repeat(req *http.Request, refused error) (*http.Response, error) {
	resp, _, err := a.send(req)
	if missesGrant(req, err) {
		return resp, err
	}
	a.tokens.recordHelp()
	if err == nil && provider.StatusCode(refused) == http.StatusNotFound {
		return nil, fault.Transientf(reasonTokenRenewed,
			"GitHub shows the repository only to a new token: Plumbline repeats the reads that found nothing")
	}
	return resp, err
}
