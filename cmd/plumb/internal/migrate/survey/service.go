// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// errToken is returned for a repository that Pipelines-as-Code reads with a token of GitHub.
var errToken = errors.New("the GitHub App does not serve the repository: use --clones")

// connect returns the files of a repository as its Git service shows them, with the credentials
// that Pipelines-as-Code has. The App's key is used at the GitHub of --github-url only, and a token
// at the service that its Repository names.
func (s *surveyor) connect(ctx context.Context, m *moving, e started) (*origin, error) {
	canonical, err := v1alpha1.CanonicalURL(m.Spec.URL) // without a password
	if err != nil {
		return nil, fmt.Errorf("its url cannot be served: %w", err)
	}
	u, err := url.Parse(canonical)
	if err != nil {
		return nil, err
	}
	at := strings.Trim(u.Path, "/")
	project := v1alpha1.Project{Owner: path.Dir(at), Name: path.Base(at), URL: canonical, ID: e.project}
	service, known := delivery.Services()[e.service]
	switch {
	case !known:
		return nil, fmt.Errorf("%s is not served", e.service)
	case e.service == gitlab.Name:
		return s.connectGitLab(ctx, m, project, service)
	case !e.byApp || m.app == nil:
		return nil, errToken
	}
	login, err := credentials.App(m.app)
	if err != nil {
		return nil, err
	}
	if project, login.InstallationID, err = github.Locate(ctx, s.GitHubURL, project, login); err != nil {
		return nil, err
	}
	client, err := service.Connect(ctx, s.GitHubURL, project, login)
	return &origin{Source: client.Source, defaultBranch: project.DefaultBranch, project: project.ID}, err
}

func (s *surveyor) connectGitLab(
	ctx context.Context, m *moving, project v1alpha1.Project, service provider.Provider,
) (*origin, error) {
	own, err := pacv1alpha1.ServiceOf(m.own, m.global)
	if err != nil {
		return nil, err
	}
	what := "reading Secret " + own.Token.Namespace + "/" + own.Token.Name
	secret, err := s.cluster.Kube.CoreV1().Secrets(own.Token.Namespace).Get(ctx, own.Token.Name, metav1.GetOptions{})
	if err != nil {
		return nil, kube.Failed(what, err)
	}
	base := service.BaseURL(own.URL, own.RepositoryURL, project)
	client, err := service.Connect(ctx, base, project, provider.Credentials{
		User: own.User, Token: strings.TrimSpace(string(secret.Data[own.Token.Key])), Reach: m.config.TenantsGit(),
		From: fmt.Sprintf("key %s of secret %s/%s", own.Token.Key, own.Token.Namespace, own.Token.Name),
	})
	return &origin{Source: client.Source, defaultBranch: cmp.Or(project.DefaultBranch, "main"), project: project.ID}, err
}
