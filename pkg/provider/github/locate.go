// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// Locate returns what a delivery would say of a repository that the App is installed on: its id,
// its default branch, and the installation. Of the project it needs the owner, the name and the
// URL. It is for commands that start without a delivery.
func Locate(
	ctx context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (v1alpha1.Project, int64, error) {
	api, err := apiURL(baseURL, p)
	if err != nil {
		return p, 0, err
	}
	reach := c.Reach
	reach.Trusted = egress.HostPort(api.String())
	app, err := asApp(newLogin(c.AppID, c.PrivateKey, time.Now), provider.NewTransport(provider.Limits{}).Within(reach),
		api, c.From)
	if err != nil {
		return p, 0, err
	}
	installation, _, err := app.Apps.FindRepositoryInstallation(ctx, p.Owner, p.Name)
	if provider.StatusCode(err) == http.StatusNotFound {
		return p, 0, fault.Operatorf(reasonRepositoryNotInstalled, "the GitHub App is not installed on %s", p.URL)
	}
	if err != nil {
		return p, 0, limits.Failed("looking for the App's installation on the repository", err)
	}
	token, _, err := app.Apps.CreateInstallationToken(ctx, installation.GetID(), &gh.InstallationTokenOptions{
		Repositories: []string{p.Name}, Permissions: &gh.InstallationPermissions{Metadata: gh.String("read")},
	})
	if err != nil {
		return p, 0, limits.Failed("minting a token for the repository", err)
	}
	for _, found := range token.Repositories {
		if strings.EqualFold(found.GetName(), p.Name) {
			p.ID, p.DefaultBranch = found.GetID(), found.GetDefaultBranch()
			return p, installation.GetID(), nil
		}
	}
	return p, 0, fault.Transientf(provider.ReasonBadAnswer, "GitHub does not say which repository the token is for")
}
