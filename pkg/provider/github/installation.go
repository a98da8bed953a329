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

// successor interprets a mint that was answered 404 (G8). If the App was installed again since the
// delivery, it returns the repository's current installation, else a fault.
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
		return 0, installationNotFound() // this contradicts the answer to the mint: a replica is stale
	}
	return now.GetID(), nil
}

// uninstalled returns InstallationGone if that is certain: GitHub finds the App itself but not its
// installation. Everything else is retried.
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
		return installationNotFound() // the server is not the API that the App is registered at
	case err != nil:
		return limits.Failed("looking for the App", err)
	}
	return fault.Operatorf(fault.ReasonInstallationGone,
		"the GitHub App was uninstalled from %s: install it again, then push or redeliver", m.owner)
}

func installationNotFound() *fault.Error {
	return fault.Operatorf(reasonInstallationNotFound,
		"the GitHub App's installation is gone: install the App again, then push or redeliver")
}

// asApp returns a client that authenticates as the App. It calls only the API's host.
func (m *minter) asApp() (*gh.Client, error) {
	base, err := url.Parse(m.api + "/")
	if err != nil {
		return nil, fault.Operatorf(reasonBadConfiguration, "github-url leads to no API: set it to https://<host>")
	}
	return asApp(m.login, m.base, base, m.from)
}

// asApp returns a client that authenticates as the App, whose key is stored at from.
func asApp(account *login, transport http.RoundTripper, api *url.URL, from string) (*gh.Client, error) {
	signed := account.transport(transport)
	if signed == nil {
		return nil, badKey(from)
	}
	client := gh.NewClient(
		&http.Client{Transport: signed, CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if !strings.EqualFold(req.URL.Host, api.Host) {
				return fault.Operatorf(reasonForeignHost, "GitHub redirects to another host; the App does not log in there")
			}
			return provider.CheckRedirect(req, via)
		}},
	)
	client.BaseURL = api
	return client, nil
}

// badKey hides the cause, which may contain the key.
func badKey(from string) *fault.Error {
	return fault.Operatorf(fault.ReasonCredentialsInvalid,
		"github-private-key in %s is not an RSA key in PEM form: set it to the App's private key", from)
}
