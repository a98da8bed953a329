// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

// Keys of the GitHub App's Secret; PaC's names.
const (
	keyAppID      = "github-application-id"
	keyPrivateKey = "github-private-key"
)

// authenticate returns the service's address and the credentials: the App's for projects that the
// App serves, else those that the Repository names. It does not use credentials that the service
// has just refused: many events may have them, and after several failed logins GitHub locks a user
// out for a while, also with correct credentials.
func (s *Session) authenticate(ctx context.Context, service provider.Provider) (string, provider.Credentials, error) {
	base, credentials, err := s.login(ctx, service)
	if err != nil {
		return "", provider.Credentials{}, err
	}
	if refused := s.pool.refusals.of(s.attempt(), s.pool.options.Clock.Now()); refused != nil {
		s.repeated = true
		return "", provider.Credentials{}, refused
	}
	return base, credentials, nil
}

func (s *Session) login(ctx context.Context, service provider.Provider) (string, provider.Credentials, error) {
	if service.BaseURL == nil {
		credentials, err := s.appCredentials(ctx)
		credentials.InstallationID = s.event.Spec.InstallationID
		return s.config.GitHubURL, credentials, err
	}
	repository, err := s.Repository(ctx)
	if err != nil {
		return "", provider.Credentials{}, err
	}
	if repository == nil {
		return "", provider.Credentials{}, fault.Operatorf(ReasonRepositoryGone,
			"Repository %s/%s is gone, and with it the credentials of its Git service", s.event.Spec.Repository.Namespace,
			s.event.Spec.Repository.Name)
	}
	global, err := s.pool.global(ctx)
	if err != nil {
		return "", provider.Credentials{}, err
	}
	own, err := pacv1alpha1.ServiceOf(repository, global)
	if err != nil {
		return "", provider.Credentials{}, fault.Operatorf(fault.ReasonCredentialsInvalid, "Repository %s/%s: %w",
			repository.Namespace, repository.Name, err)
	}
	token, err := s.token(ctx, repository, own.Token)
	base := service.BaseURL(own.URL, own.RepositoryURL, s.event.Spec.Project)
	login := loginOf(repository, own, token, reachOf(own, base, s.pool.options.Namespace, s.config))
	login.Quiet = pacv1alpha1.CommentsOff(repository, global)
	return base, login, err
}

func loginOf(
	repository *pacv1alpha1.Repository, own pacv1alpha1.Service, token string, reach egress.Policy,
) provider.Credentials {
	return provider.Credentials{User: own.User, Token: token, Shared: own.Token.Namespace != repository.Namespace,
		From: fmt.Sprintf("key %s of secret %s/%s", own.Token.Key, own.Token.Namespace, own.Token.Name), Reach: reach}
}

// reachOf returns where a token may be sent. A user who may write Secrets in Plumbline's own
// namespace, system, is its administrator: the service that the global Repository names may be
// anywhere.
func reachOf(own pacv1alpha1.Service, base, system string, c *config.Config) egress.Policy {
	if own.Token.Namespace == system {
		return egress.Policy{Allowed: c.GitAllowed, Trusted: egress.HostPort(strings.TrimSpace(base))}
	}
	return c.TenantsGit()
}

// token reads the token of a Repository's Git service live, so that a changed one needs no restart.
func (s *Session) token(
	ctx context.Context, repository *pacv1alpha1.Repository, key pacv1alpha1.SecretKey,
) (string, error) {
	if key.Name == "" {
		return "", fault.Operatorf(fault.ReasonCredentialsMissing,
			"Repository %s/%s names no token: set git_provider.secret to a Secret with the token of its Git service",
			repository.Namespace, repository.Name)
	}
	secret, err := s.loginSecret(ctx, key.Namespace, key.Name)
	return tokenIn(secret, err, key)
}

// tokenIn returns the token in a Secret, given the result of reading it.
func tokenIn(secret *corev1.Secret, err error, key pacv1alpha1.SecretKey) (string, error) {
	if apierrors.IsNotFound(err) {
		return "", fault.Operatorf(fault.ReasonCredentialsMissing,
			"secret %s/%s does not exist: create it with the key %s and the token of the Git service", key.Namespace, key.Name,
			key.Key)
	}
	if err != nil {
		return "", fault.FromKube(fault.VerbRead, fmt.Errorf("reading the token of the Git service: %w", err))
	}
	token := strings.TrimSpace(string(secret.Data[key.Key]))
	if token == "" {
		return "", fault.Operatorf(fault.ReasonCredentialsMissing,
			"secret %s/%s has no key %s, or it is empty: set it to the token of the Git service", key.Namespace, key.Name,
			key.Key)
	}
	return token, nil
}

// appCredentials reads the App's Secret for each session, so that a changed key needs no restart.
func (s *Session) appCredentials(ctx context.Context) (provider.Credentials, error) {
	namespace, name := s.pool.options.Namespace, s.pool.options.AppSecret
	secret, err := s.app(ctx)
	if apierrors.IsNotFound(err) {
		return provider.Credentials{}, fault.Operatorf(fault.ReasonCredentialsMissing,
			"secret %s/%s does not exist: create it with the keys %s, %s and webhook.secret of the GitHub App", namespace, name,
			keyAppID, keyPrivateKey)
	}
	if err != nil {
		return provider.Credentials{}, fault.FromKube(fault.VerbRead, fmt.Errorf("reading the GitHub App's secret: %w", err))
	}
	return App(secret)
}

// App returns the GitHub App's credentials in its Secret. If they are wrong, it returns an Operator
// fault.
func App(secret *corev1.Secret) (provider.Credentials, error) {
	namespace, name := secret.Namespace, secret.Name
	for _, key := range []string{keyAppID, keyPrivateKey} {
		if strings.TrimSpace(string(secret.Data[key])) == "" {
			return provider.Credentials{}, fault.Operatorf(fault.ReasonCredentialsMissing,
				"secret %s/%s has no key %s, or it is empty: set it to the GitHub App's", namespace, name, key)
		}
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(secret.Data[keyAppID])), 10, 64)
	if err != nil {
		return provider.Credentials{}, fault.Operatorf(fault.ReasonCredentialsInvalid,
			"secret %s/%s: key %s is not a number: set it to the App's ID", namespace, name, keyAppID)
	}
	return provider.Credentials{
		AppID:      id,
		PrivateKey: secret.Data[keyPrivateKey],
		From:       fmt.Sprintf("secret %s/%s", namespace, name),
	}, nil
}

// loginSecret is Secret for the one with the credentials of the Git service.
func (s *Session) loginSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	s.secret = types.NamespacedName{Namespace: namespace, Name: name}
	return s.Secret(ctx, namespace, name)
}
