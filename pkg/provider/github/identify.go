// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"strings"

	"github.com/bradleyfalzon/ghinstallation/v2"
	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

// identify implements provider.Provider.Identify. It mints a token that may only read the metadata
// of the repository: the answer to that names the repository and its id.
func (s *service) identify(
	ctx context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (int64, error) {
	api, err := apiURL(baseURL, p)
	if err != nil {
		return 0, err
	}
	p.ID = 1 // the only fact that is not known yet
	if err := checkCredentials(p, c); err != nil {
		return 0, err
	}
	reach := c.Reach
	reach.Trusted = egress.HostPort(api.String())
	m := &minter{base: s.transport.Within(reach), from: c.From, login: newLogin(c.AppID, c.PrivateKey, s.options.Now)}
	app := m.login.transport(tokenAnswers{m.base})
	if app == nil {
		return 0, badKey(c.From)
	}
	token := ghinstallation.NewFromAppsTransport(app, c.InstallationID)
	token.BaseURL = strings.TrimSuffix(api.String(), "/")
	token.InstallationTokenOptions = &gh.InstallationTokenOptions{
		Repositories: []string{p.Name}, Permissions: &gh.InstallationPermissions{Metadata: gh.String("read")},
	}
	if _, err := token.Token(ctx); err != nil {
		return 0, m.mintFault(err)
	}
	found, err := token.Repositories()
	if err != nil || len(found) != 1 || found[0].GetID() <= 0 {
		return 0, fault.Transientf(provider.ReasonBadAnswer, "looking the repository up: the answer names no repository")
	}
	if !strings.EqualFold(found[0].GetFullName(), p.Owner+"/"+p.Name) { // the installation is another account's
		return 0, fault.Operatorf(reasonRepositoryNotInstalled,
			"the GitHub App's installation does not cover %s/%s: add it to the installation", p.Owner, p.Name)
	}
	return found[0].GetID(), nil
}
