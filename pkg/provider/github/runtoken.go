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

// runTokens mints and revokes the tokens of runs. The controller's own token is another one: it may
// write checks, which no run's may, and a run's is revoked when its event settles.
type runTokens struct {
	minter *minter
	base   http.RoundTripper
	// limit is the App's, as mints are: one that is limited stops those of its other repositories
	// for a while as well.
	limit *limits.Mints
}

// mint asks for a token of the repository alone with these permissions. Nobody waits for somebody
// else's mint.
func (t *runTokens) mint(ctx context.Context, permissions map[string]string) (provider.Token, error) {
	wanted, err := permissionsOf(permissions)
	if err != nil {
		return provider.Token{}, err
	}
	if err := t.limit.Stands(t.minter.now()); err != nil {
		return provider.Token{}, err
	}
	token, err := t.minter.ask(ctx, wanted)
	t.limit.Learn(err, t.minter.now())
	token.Own = err == nil
	return token, err
}

// revoke ends a token with the token itself. GitHub answers 401 for one that has expired or is
// revoked already.
func (t *runTokens) revoke(ctx context.Context, secret string) error {
	const what = "revoking a run's token"
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, t.minter.api+"/installation/token", nil)
	if err != nil {
		return fault.Operatorf("BadConfiguration", "%s: github-url leads to no API", what)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := t.base.RoundTrip(req) // no redirect is followed: the token goes to this host alone
	switch {
	case provider.StatusCode(err) == http.StatusUnauthorized:
		return nil
	case err != nil:
		return limits.Failed(what, err)
	}
	_ = resp.Body.Close() // it was read whole
	if resp.StatusCode != http.StatusNoContent {
		return fault.Transientf("BadAnswer", "%s: GitHub answered %s", what, resp.Status)
	}
	return nil
}

// lacking is the fault of a mint that GitHub answered 422 although the repository can be had: it is
// about the permissions.
func lacking(err error) *fault.Error {
	words := ""
	if answer := (*provider.StatusError)(nil); errors.As(err, &answer) {
		words = answer.Message
	}
	return fault.Operatorf(
		fault.ReasonPermissionMissing,
		"GitHub does not issue the token that a run is to have: the GitHub App lacks one of its permissions "+
			"(contents: read, and what settings.run_token_permissions asks for; GitHub says: %s)",
		words,
	)
}

// permissionsOf is what the library asks for. A name that it does not know would be left out
// without a word.
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
			"settings.run_token_permissions has a name that this version does not know as a permission of GitHub: %w", err)
	}
	return &known, nil
}
