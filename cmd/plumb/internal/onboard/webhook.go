// SPDX-License-Identifier: Apache-2.0

package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/hooks"
)

// Webhook is the webhook of a GitLab project, or of a GitHub repository that no App serves.
type Webhook struct {
	// Namespace and Name are the Repository's.
	Namespace, Name string
	// URL leads to the receivers; if it is empty, it is webhook-url of ConfigMap in the namespace
	// System.
	URL, System, ConfigMap string
	// Token may set webhooks; if it is empty, the Repository's own is used. It is not stored.
	Token string
}

// Add adds the webhook, or corrects its events and its secret.
func (w Webhook) Add(ctx context.Context, c *kube.Cluster, say func(format string, args ...any)) error {
	repository, secret, err := find(ctx, c, w.Namespace, w.Name)
	if err != nil {
		return err
	}
	address, err := w.address(ctx, c)
	if err != nil {
		return err
	}
	own, shared, err := secret.read(ctx, c)
	if err != nil {
		return err
	}
	token := cmp.Or(w.Token, own)
	if token == "" {
		return fmt.Errorf("%s has no key %s: store a token with plumb webhook update-token", secret, secret.token.key)
	}
	at, err := projectOf(repository, token)
	if err != nil {
		return err
	}
	if shared == "" {
		if shared, err = secret.generate(ctx, c); err != nil {
			return err
		}
		say("%s has a new key %s", secret.at(secret.webhook), secret.webhook.key)
	}
	created, err := at.put(ctx, address, shared)
	switch code := provider.StatusCode(err); {
	case code == http.StatusForbidden, code == http.StatusNotFound, fault.Is(err, fault.Operator):
		return fmt.Errorf("%w: setting a webhook needs %s: give a token that may with --token-file, which is not stored",
			err, at.rights)
	case err != nil:
		return err
	case created:
		say("The webhook %s was added to %s", address, repository.Spec.URL)
	default:
		say("The webhook %s of %s has the right events and secret", address, repository.Spec.URL)
	}
	return nil
}

// CheckWebhookURL returns an error if no webhook can lead to the address. It does not repeat the
// address, which may have a password.
func CheckWebhookURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("--webhook-url: give the https:// URL that leads to Service plumbline-receiver, " +
			"without a user or password; the Git service sends events there")
	}
	return nil
}

// address returns where the webhook leads.
func (w Webhook) address(ctx context.Context, c *kube.Cluster) (string, error) {
	if w.URL != "" {
		return w.URL, CheckWebhookURL(w.URL)
	}
	name := cmp.Or(w.ConfigMap, config.Name)
	what := fmt.Sprintf("reading webhook-url of ConfigMap %s/%s", w.System, name)
	cm, err := c.Kube.CoreV1().ConfigMaps(w.System).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("%w, or give the address with --webhook-url", kube.Failed(what, err))
	}
	settings, _ := config.New(cm.Data)
	if settings.WebhookURL == "" {
		return "", fmt.Errorf("%s: it is not set: give the receivers' address with --webhook-url", what)
	}
	return settings.WebhookURL + "/", nil
}

// UpdateToken stores a new token in the Repository's Secret, after the Git service has accepted it.
func UpdateToken(
	ctx context.Context, c *kube.Cluster, of metav1.ObjectMeta, token string, say func(format string, args ...any),
) error {
	repository, secret, err := find(ctx, c, of.Namespace, of.Name)
	if err != nil {
		return err
	}
	role, err := verify(ctx, repository, token)
	if err != nil {
		return fmt.Errorf("the new token was not stored: %w", err)
	}
	old, _, err := secret.read(ctx, c)
	if err != nil {
		return err
	}
	if old == token {
		say("%s has this token already, and the Git service accepts it: %s", secret, role)
		return nil
	}
	if err := secret.putToken(ctx, c, token); err != nil {
		return err
	}
	say("%s has the new token: %s. Plumbline uses it for the next call", secret, role)
	return nil
}

// verify returns what the token's role allows.
func verify(ctx context.Context, repository *pacv1alpha1.Repository, token string) (string, error) {
	at, err := projectOf(repository, token)
	if err != nil {
		return "", err
	}
	return at.verify(ctx)
}

// remote is a repository at its Git service, as a token sees it.
type remote struct {
	// put adds the webhook or corrects it. rights are what that needs.
	put    func(ctx context.Context, address, secret string) (created bool, err error)
	rights string
	// verify returns what the token's role allows.
	verify func(ctx context.Context) (string, error)
}

// projectOf returns the project of a Repository as a token sees it. The user who calls plumb chose
// both, so its server may have an address that is not public.
func projectOf(repository *pacv1alpha1.Repository, token string) (*remote, error) {
	canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	if err != nil {
		return nil, fmt.Errorf("spec.url of Repository %s/%s: %w", repository.Namespace, repository.Name, err)
	}
	baseURL, of := gitlab.BaseURL, onGitLab
	if repository.OnGitHub() {
		baseURL, of = github.BaseURL, onGitHub
	}
	base := baseURL(repository.Spec.GitProvider.URL, repository.Spec.URL, v1alpha1.Project{})
	return of(base, provider.ProjectAt(base, canonical), provider.Credentials{
		Token: token, From: "the given token", Reach: egress.Policy{Trusted: egress.HostPort(base)},
	})
}

func onGitLab(base string, p v1alpha1.Project, c provider.Credentials) (*remote, error) {
	log, err := gitlab.Webhooks(base, p, c, "plumb")
	if err != nil {
		return nil, err
	}
	return &remote{log.Put, "the scope api and the role Maintainer", func(ctx context.Context) (string, error) {
		role, err := log.Verify(ctx)
		switch {
		case err != nil:
			return "", err
		case role < hooks.Maintainer:
			return "its role is Developer, so undelivered webhooks are not requested again", nil
		}
		return "its role is Maintainer", nil
	}}, nil
}

func onGitHub(base string, p v1alpha1.Project, c provider.Credentials) (*remote, error) {
	of, err := github.Webhooks(base, p, c, "plumb")
	if err != nil {
		return nil, err
	}
	const rights = "the permission Webhooks: write (of a classic token, the scope admin:repo_hook) and the role Admin"
	return &remote{of.Put, rights, func(ctx context.Context) (string, error) {
		return "its user has write access", of.Verify(ctx)
	}}, nil
}

// find returns a Repository that names a token, and its Secret.
func find(
	ctx context.Context, c *kube.Cluster, namespace, name string,
) (*pacv1alpha1.Repository, *secretValues, error) {
	what := fmt.Sprintf("Repository %s/%s", namespace, name)
	repository, err := c.Own.PipelinesascodeV1alpha1().Repositories(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, kube.Failed("reading "+what, err)
	}
	git := repository.Spec.GitProvider
	switch {
	case git == nil || git.Type != gitlab.Name && !repository.OnGitHub():
		return nil, nil, fmt.Errorf("%s has no git_provider for GitLab, or for GitHub without an App: "+
			"a GitHub App has one webhook for all repositories", what)
	case git.Secret == nil || git.WebhookSecret == nil:
		return nil, nil, fmt.Errorf(
			"%s names no git_provider.secret and webhook_secret: name the Secret that holds them. "+
				"If it uses those of the global Repository, call the command for the global Repository",
			what,
		)
	}
	return repository, secretOf(repository), nil
}
