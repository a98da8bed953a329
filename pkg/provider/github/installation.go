// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// successor interprets a 404 in answer to a mint (G8): it returns the installation that the
// repository has now, if the App was installed again since the delivery. Else it returns a fault.
func (m *minter) successor(ctx context.Context) (int64, error) {
	app, err := m.asApp()
	if err != nil {
		return 0, err
	}
	now, _, err := app.Apps.FindRepositoryInstallation(ctx, m.owner, m.name)
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return 0, m.uninstalled(ctx, app)
	case err != nil:
		return 0, limits.Failed("looking for the App's installation on the repository", err)
	case now.GetID() == 0 || now.GetID() == m.installation:
		return 0, installationNotFound() // another answer than the mint's: a replica lags
	}
	return now.GetID(), nil
}

// uninstalled is InstallationGone when that is certain, because GitHub finds the App itself and not
// its installation. What the answers leave open is waited for.
func (m *minter) uninstalled(ctx context.Context, app *gh.Client) error {
	_, _, err := app.Apps.GetInstallation(ctx, m.installation)
	switch {
	case err == nil:
		return installationNotFound()
	case provider.StatusCode(err) != http.StatusNotFound:
		return limits.Failed("looking for the App's installation", err)
	}
	self, _, err := app.Apps.Get(ctx, "")
	switch {
	case provider.StatusCode(err) == http.StatusNotFound, err == nil && self.GetID() != m.app:
		return installationNotFound() // what answers is not the API that the App is registered at
	case err != nil:
		return limits.Failed("looking for the App", err)
	}
	return fault.Operatorf(fault.ReasonInstallationGone,
		"the GitHub App was uninstalled from %s: install it again, then push or redeliver", m.owner)
}

func installationNotFound() *fault.Error {
	return fault.Operatorf("InstallationNotFound",
		"the GitHub App's installation is gone: install the App again, then push or redeliver")
}

// asApp returns a client that is the App itself. It is used for no other host than the API's.
func (m *minter) asApp() (*gh.Client, error) {
	base, err := url.Parse(m.api + "/")
	if err != nil {
		return nil, fault.Operatorf("BadConfiguration", "github-url leads to no API: set it to https://<host>")
	}
	return asApp(m.login, m.base, base, m.from)
}

// asApp returns a client that logs in as the App, whose key is kept at from.
func asApp(account *login, transport http.RoundTripper, api *url.URL, from string) (*gh.Client, error) {
	signed := account.transport(transport)
	if signed == nil {
		return nil, badKey(from)
	}
	client := gh.NewClient(
		&http.Client{Transport: signed, CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if !strings.EqualFold(req.URL.Host, api.Host) {
				return fault.Operatorf("ForeignHost", "GitHub redirects to another host; the App does not log in there")
			}
			return provider.CheckRedirect(req, via)
		}},
	)
	client.BaseURL = api
	return client, nil
}

// badKey hides the cause, which may quote the key.
func badKey(from string) *fault.Error {
	return fault.Operatorf(fault.ReasonCredentialsInvalid,
		"github-private-key in %s is not an RSA key in PEM form: set it to the App's private key", from)
}
