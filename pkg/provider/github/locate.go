// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// Locate returns what a delivery would say of a repository that the App is installed on: its ids,
// its default branch, and the installation. Of the project it needs the owner, the name and the
// URL. It is for commands that start without a delivery.
func Locate(
	ctx context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (v1alpha1.Project, int64, error) {
	s := &service{
		options:   Options{Now: time.Now, UserAgent: "plumbline"},
		transport: provider.NewTransport(provider.Limits{}),
	}
	located, err := s.locate(ctx, baseURL, p, c)
	return located.Project, located.InstallationID, err
}

// locate implements provider.Provider.Locate. The App asks for its installation on the repository,
// and mints a token for the repository's name that may only read metadata: the answer describes the
// repository
// (https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app).
func (s *service) locate(
	ctx context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (v1alpha1.Located, error) {
	api, err := apiURL("github-url", baseURL, p)
	if err != nil {
		return v1alpha1.Located{}, err
	}
	if !delivery.ValidName(p.Owner, p.Name) {
		return v1alpha1.Located{}, notARepository(p)
	}
	reach := c.Reach
	reach.Trusted = egress.HostPort(api.String())
	account := s.logins.GetOrCreate(loginKey{c.AppID, sha256.Sum256(c.PrivateKey)},
		func() *login { return newLogin(c.AppID, c.PrivateKey, s.options.Now) })
	app, err := asApp(account, s.transport.Within(reach), api, c.From)
	if err != nil {
		return v1alpha1.Located{}, err
	}
	app.UserAgent = s.options.UserAgent
	installation, _, err := app.Apps.FindRepositoryInstallation(ctx, p.Owner, p.Name)
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return v1alpha1.Located{}, notInstalled(p)
	case err != nil:
		return v1alpha1.Located{}, appFailed("looking for the App's installation on the repository", err, c.From)
	case installation.GetID() <= 0:
		return v1alpha1.Located{}, noAnswer("looking for the App's installation on the repository")
	}
	token, _, err := app.Apps.CreateInstallationToken(ctx, installation.GetID(), &gh.InstallationTokenOptions{
		Repositories: []string{p.Name},
		Permissions:  &gh.InstallationPermissions{Metadata: gh.String("read")},
	})
	switch code := provider.StatusCode(err); {
	case code == http.StatusNotFound, code == http.StatusUnprocessableEntity:
		return v1alpha1.Located{}, notInstalled(p)
	case err != nil:
		return v1alpha1.Located{}, appFailed("reading the repository as the App", err, c.From)
	}
	project, err := projectOf(p, token.Repositories)
	return v1alpha1.Located{Project: project, InstallationID: installation.GetID()}, err
}

// projectOf returns the project of an answer about one repository.
func projectOf(p v1alpha1.Project, answer []*gh.Repository) (v1alpha1.Project, error) {
	if len(answer) != 1 || answer[0].GetID() <= 0 || answer[0].GetOwner().GetID() <= 0 {
		return v1alpha1.Project{}, noAnswer("reading the repository as the App")
	}
	now := answer[0]
	if !strings.EqualFold(now.GetFullName(), p.Owner+"/"+p.Name) {
		return v1alpha1.Project{}, fault.Operatorf(reasonRepositoryReplaced,
			"%s/%s was renamed to %s: set spec.url of the Repository to its new URL", p.Owner, p.Name, now.GetFullName())
	}
	return v1alpha1.Project{
		Owner: now.GetOwner().GetLogin(), Name: now.GetName(), ID: now.GetID(), OwnerID: now.GetOwner().GetID(),
		URL:           text.Bytes(text.Clean(now.GetHTMLURL()), payload.MaxURL),
		DefaultBranch: text.Bytes(text.Clean(now.GetDefaultBranch()), payload.MaxRef),
	}, nil
}

func notInstalled(p v1alpha1.Project) error {
	return fault.Operatorf(reasonInstallationNotFound,
		"the GitHub App is not installed on %s/%s: add the repository to the App's installation", p.Owner, p.Name)
}

// appFailed returns the fault of a call that was made as the App.
func appFailed(what string, err error, from string) error {
	if provider.StatusCode(err) == http.StatusUnauthorized {
		return provider.CredentialsRefused(
			err, "GitHub refuses the App's id and private key in "+from+": check both, and the cluster's clock",
		)
	}
	return limits.Failed(what, err)
}

func notARepository(p v1alpha1.Project) error {
	return fault.Operatorf(reasonBadRepository, "%q is not a GitHub repository", p.Owner+"/"+p.Name)
}
