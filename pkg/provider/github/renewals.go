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

// renewEvery is how often a token of an installation is minted again at most because a call was
// refused. A token has what the installation had when it was minted, and lives for an hour: an
// operator who has granted what was missing must not wait for its end.
const renewEvery = time.Minute

// renewals limits these mints for one installation. Safe for concurrent use.
type renewals struct {
	mu     sync.Mutex
	tried  time.Time // when a token was last minted again to see whether that helps
	helped time.Time // when it did: older tokens of the installation's other repositories lack the same
	has    string    // the permissions of the newest token
}

// may reports whether a token that was minted at a time may be replaced now.
func (r *renewals) may(since, now time.Time) bool {
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

// help notes that a call is accepted with a token that was minted at since.
func (r *renewals) help(since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since.After(r.helped) {
		r.helped = since
	}
}

// granted notes the permissions of a token that was minted at since. If they are others than those
// of the one before, older tokens lack some: it need not be their own call that finds out.
func (r *renewals) granted(permissions string, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.has != "" && r.has != permissions && since.After(r.helped) {
		r.helped = since
	}
	r.has = permissions
}

// renew replaces a token that a call was refused with. It reports whether there is another one: the
// refused one stays if none can be had.
func (m *minter) renew(ctx context.Context, refused string) bool {
	m.mu.Lock()
	if m.kept.Value != refused {
		defer m.mu.Unlock()
		return m.kept.Value != ""
	}
	if !m.renewals.may(m.since, m.now()) {
		m.mu.Unlock()
		return false
	}
	run := m.join(ctx)
	m.mu.Unlock()
	_, err := run.wait(ctx)
	return err == nil
}

// helped notes that the token that is used now is accepted where the one before was not.
func (m *minter) helped() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewals.help(m.since)
}

// lacks reports whether a call was refused for what the installation may have been granted since
// its token was minted: a permission, the end of a suspension, or the repository itself. Any other
// 404 is about something in the repository.
func lacks(req *http.Request, err error) bool {
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

// again repeats a call with the renewed token. A repository that the one before did not see makes
// every 404 that it was answered doubtful: the whole attempt is repeated.
func (a *authenticated) again(req *http.Request, refused error) (*http.Response, error) {
	resp, _, err := a.send(req)
	if lacks(req, err) {
		return resp, err
	}
	a.tokens.helped()
	if err == nil && provider.StatusCode(refused) == http.StatusNotFound {
		return nil, fault.Transientf("TokenRenewed",
			"GitHub shows the repository with a new token only: what it did not show before is asked for again")
	}
	return resp, err
}
