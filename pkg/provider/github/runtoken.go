// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// runTokens mints and revokes the tokens of runs. They differ from the controller's own token: they
// must not write checks, and they are revoked when their event settles.
type runTokens struct {
	minter *minter
	base   http.RoundTripper
	// limit is the App's, because GitHub limits the mints of an App. A limited mint also stops
	// those of its other repositories for a while.
	limit *limits.Mints
}

// mint mints a token with these permissions for the repositories with these ids, nil for the whole
// installation. It never waits for another mint.
func (t *runTokens) mint(
	ctx context.Context, permissions map[string]string, repositories []int64,
) (provider.Token, error) {
	wanted, err := permissionsOf(permissions)
	if err != nil {
		return provider.Token{}, err
	}
	if err := t.limit.Limited(t.minter.now()); err != nil {
		return provider.Token{}, err
	}
	token, err := t.minter.ask(ctx, wanted, repositories)
	t.limit.Learn(err, t.minter.now())
	token.Own = err == nil
	return token, err
}

// revoke revokes a token with the token itself. GitHub answers 401 if it has expired or is already
// revoked.
func (t *runTokens) revoke(ctx context.Context, secret string) error {
	const what = "revoking a run's token"
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, t.minter.api+"/installation/token", nil)
	if err != nil {
		return fault.Operatorf(reasonBadConfiguration, "%s: github-url leads to no API", what)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := t.base.RoundTrip(req) // no redirect is followed: the token is sent to this host only
	switch {
	case provider.StatusCode(err) == http.StatusUnauthorized:
		return nil
	case err != nil:
		return limits.Failed(what, err)
	}
	_ = resp.Body.Close() // it was read whole
	if resp.StatusCode != http.StatusNoContent {
		return fault.Transientf(provider.ReasonBadAnswer, "%s: GitHub answered %s", what, resp.Status)
	}
	return nil
}

// lacking returns the fault of a mint that GitHub answered 422 although the repository is covered:
// a permission is missing.
func lacking(err error) *fault.Error {
	words := ""
	if answer := (*provider.StatusError)(nil); errors.As(err, &answer) {
		words = answer.Message
	}
	return fault.Operatorf(
		fault.ReasonPermissionMissing,
		"GitHub does not issue the token that a run is to have: the GitHub App lacks one of its permissions "+
			"(contents: read, and what settings.run_token_permissions asks for), or its installation has just lost a repository "+
			"that the token is to reach (GitHub says: %s)",
		words,
	)
}

// permissionsOf converts permissions to the library's type. It refuses a name that the type does
// not have, which would be dropped silently.
func permissionsOf(asked map[string]string) (*gh.InstallationPermissions, error) {
	var known gh.InstallationPermissions
	said, err := json.Marshal(asked)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(said))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&known)
	}
	if err != nil {
		return nil, fault.Operatorf(fault.ReasonPermissionMissing,
			"settings.run_token_permissions has a permission that GitHub does not have, or that this version does not know: %w", err)
	}
	return &known, nil
}
