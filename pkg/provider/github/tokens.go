// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/runtime/panics"
)

const (
	// callLife is how long a token must still be valid for a call. A call takes at most 30 s, and
	// clocks differ.
	callLife = 2 * time.Minute
)

// minter mints and caches the installation token of one repository. It uses ghinstallation for one
// mint at a time, because that library's own cache waits for a lock without a context.
type minter struct {
	base                          http.RoundTripper
	api                           string
	login                         *login
	app, installation, repository int64
	owner, name                   string // of the repository, to find the App's installation
	from                          string // where the key is stored
	now                           func() time.Time
	renewals                      *renewals

	mu      sync.Mutex
	cached  provider.Token // empty until one is minted
	since   time.Time      // when the mint of cached was started
	running *minting
}

// minting is a mint in flight that several callers wait for.
type minting struct {
	done   chan struct{}
	began  time.Time
	token  provider.Token
	err    error
	caught panics.Catcher
}

// token returns a token that is valid for at least life. Concurrent callers share one mint. It is
// not cancelled with ctx, because others wait for it and its token serves the next call.
func (m *minter) token(ctx context.Context, life time.Duration) (provider.Token, error) {
	m.mu.Lock()
	if m.cached.Value != "" && m.cached.ExpiresAt.Sub(m.now()) > life {
		defer m.mu.Unlock()
		return m.cached, nil
	}
	run := m.join(ctx)
	m.mu.Unlock()
	return run.wait(ctx)
}

// join returns the mint in flight, or starts one. The caller holds mu.
func (m *minter) join(ctx context.Context) *minting {
	if m.running == nil {
		m.running = &minting{done: make(chan struct{}), began: m.now()}
		go m.mint(context.WithoutCancel(ctx), m.running)
	}
	return m.running
}

func (run *minting) wait(ctx context.Context) (provider.Token, error) {
	select {
	case <-run.done:
		run.caught.Again()
		return run.token, run.err
	case <-ctx.Done():
		return provider.Token{}, fault.New(fault.Transient, fault.ReasonCanceled, ctx.Err())
	}
}

// forget implements tokens: another token can be minted.
func (m *minter) forget(secret string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cached.Value == secret {
		m.cached = provider.Token{}
	}
	return true
}

// remedy implements tokens.
func (m *minter) remedy() string {
	return "GitHub refuses a token that it has just issued for the App of " + m.from
}

func (m *minter) mint(ctx context.Context, run *minting) {
	run.caught.Run(func() { run.token, run.err = m.ask(ctx, nil, []int64{m.repository}) })
	m.mu.Lock()
	defer m.mu.Unlock()
	if run.err == nil && run.token.Value != "" { // there is no token after a panic
		m.cached, m.since = run.token, run.began
	}
	m.running = nil
	close(run.done)
}

// ask mints a token for the repositories with these ids, nil for the whole installation. Its
// permissions may be nil for all that the App has.
func (m *minter) ask(
	ctx context.Context, permissions *gh.InstallationPermissions, repositories []int64,
) (provider.Token, error) {
	token, err := m.askFor(ctx, m.installation, permissions, repositories)
	if provider.StatusCode(err) == http.StatusNotFound {
		var again int64
		if again, err = m.successor(ctx); err == nil {
			token, err = m.askFor(ctx, again, permissions, repositories)
		}
	}
	if err != nil && permissions != nil && provider.StatusCode(err) == http.StatusUnprocessableEntity {
		// GitHub answers the same for a repository that the installation does not cover. Then our
		// own token cannot be minted either.
		if _, own := m.token(ctx, callLife); own != nil {
			return provider.Token{}, own
		}
		return provider.Token{}, lacking(err)
	}
	if err != nil {
		return provider.Token{}, m.mintFault(err)
	}
	return token, nil
}

// askFor mints a token of an installation.
func (m *minter) askFor(
	ctx context.Context, installation int64, permissions *gh.InstallationPermissions, repositories []int64,
) (provider.Token, error) {
	app := m.login.transport(tokenAnswers{m.base})
	if app == nil {
		return provider.Token{}, badKey(m.from)
	}
	t := ghinstallation.NewFromAppsTransport(app, installation)
	t.BaseURL = m.api
	t.InstallationTokenOptions = &gh.InstallationTokenOptions{
		RepositoryIDs: repositories,
		Permissions:   permissions,
	}
	began := m.now()
	secret, err := t.Token(ctx)
	if err != nil {
		return provider.Token{}, err
	}
	expires, _, err := t.Expiry()
	if err != nil {
		return provider.Token{}, fault.New(fault.Transient, provider.ReasonBadAnswer, err)
	}
	if permissions == nil {
		m.recordGrant(t, began)
	}
	return provider.Token{Value: secret, ExpiresAt: expires}, nil
}

// recordGrant records for the installation's other repositories which permissions a token has that
// was minted at since.
func (m *minter) recordGrant(t *ghinstallation.Transport, since time.Time) {
	has, err := t.Permissions()
	if err != nil {
		return
	}
	if said, err := json.Marshal(has); err == nil {
		m.renewals.recordGrant(string(said), since)
	}
}

// mintFault classifies a failed mint. It hides the answer's status from callers, which would take a
// 404 for one about their own object.
func (m *minter) mintFault(err error) *fault.Error {
	var own *fault.Error
	if errors.As(err, &own) && provider.StatusCode(err) == 0 && own.Class == fault.Operator {
		return own // already a message of ours
	}
	var answer *provider.StatusError
	errors.As(err, &answer)
	switch provider.StatusCode(err) {
	case http.StatusNotFound:
		return installationNotFound()
	case http.StatusUnprocessableEntity:
		return fault.Operatorf(reasonRepositoryNotInstalled,
			"the GitHub App is not installed on this repository: add it to the installation (GitHub says: %s)", answer.Message)
	case http.StatusUnauthorized:
		return provider.CredentialsRefused(err,
			"GitHub refuses the App's id and private key in "+m.from+": check both, and the cluster's clock")
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		return fault.Transientf(provider.ReasonBadAnswer, "minting an installation token: %s", err.Error())
	}
	return &fault.Error{
		Class: f.Class, Reason: f.Reason, RetryAfter: f.RetryAfter, Message: "minting an installation token: " + f.Message,
	}
}

// tokenAnswers refuses successful answers without a token: ghinstallation v2.10.0 dereferences a
// null pointer on "null", and accepts an empty token.
type tokenAnswers struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t tokenAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fault.New(fault.Transient, provider.ReasonBadAnswer, err)
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Token == "" || answer.ExpiresAt.IsZero() {
		return nil, fault.Transientf(provider.ReasonBadAnswer, "the answer %s holds no token", resp.Status)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
