// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Keys of the GitHub App's Secret; PaC's names.
const (
	keyAppID      = "github-application-id"
	keyPrivateKey = "github-private-key"
)

// connect returns the authenticated view of the event's repository, once a reconcile. It holds one of the Git host's
// slots until the reconcile ends.
func (w *work) connect(ctx context.Context) (*provider.Client, error) {
	if w.client != nil {
		return w.client, nil
	}
	spec := &w.event.Spec
	service, known := w.r.Providers[spec.Provider]
	if !known {
		return nil, fault.Operatorf("ProviderUnknown", "this version serves no Git service %q", spec.Provider)
	}
	release, free := w.r.slots.take(fmt.Sprintf("%s/%d", spec.Host, spec.InstallationID))
	if !free {
		return nil, fault.Throttledf(fault.ReasonBusy, busyRetry, "waiting for other events of %s", spec.Host)
	}
	w.release = release
	base, credentials, err := w.authenticate(ctx, service)
	if err != nil {
		return nil, err
	}
	client, err := service.Connect(ctx, base, spec.Project, credentials)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", spec.Host, err)
	}
	w.client = &client
	return w.client, nil
}

// authenticate returns where the service is and what to log in with: the App's credentials for what the App serves, else
// those that the Repository names.
func (w *work) authenticate(ctx context.Context, service provider.Provider) (string, provider.Credentials, error) {
	if service.BaseURL == nil {
		credentials, err := w.r.credentials(ctx)
		credentials.InstallationID = w.event.Spec.InstallationID
		return w.config.GitHubURL, credentials, err
	}
	repository, err := w.r.repository(ctx, w)
	if err != nil {
		return "", provider.Credentials{}, err
	}
	if repository == nil {
		return "", provider.Credentials{}, fault.Operatorf(reasonRepositoryGone, "Repository %s/%s is gone, and with it the credentials of its Git service",
			w.event.Spec.Repository.Namespace, w.event.Spec.Repository.Name)
	}
	global, err := w.r.global(ctx)
	if err != nil {
		return "", provider.Credentials{}, err
	}
	own, err := pacv1alpha1.ServiceOf(repository, global)
	if err != nil {
		return "", provider.Credentials{}, fault.Operatorf("CredentialsInvalid", "Repository %s/%s: %w", repository.Namespace, repository.Name, err)
	}
	token, err := w.r.token(ctx, repository, own.Token)
	return service.BaseURL(own.URL, repository.Spec.URL, w.event.Spec.Project), provider.Credentials{User: own.User, Token: token}, err
}

// token reads the token of a Repository's Git service live, so that a changed one needs no restart.
func (r *Reconciler) token(ctx context.Context, repository *pacv1alpha1.Repository, key pacv1alpha1.SecretKey) (string, error) {
	if key.Name == "" {
		return "", fault.Operatorf("CredentialsMissing", "Repository %s/%s names no token: set git_provider.secret to a Secret with the token of its Git service", repository.Namespace, repository.Name)
	}
	secret, err := r.kube.Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fault.Operatorf("CredentialsMissing", "secret %s/%s does not exist: create it with the key %s and the token of the Git service", key.Namespace, key.Name, key.Key)
	}
	if err != nil {
		return "", fault.FromKube(fault.VerbRead, fmt.Errorf("reading the token of the Git service: %w", err))
	}
	token := strings.TrimSpace(string(secret.Data[key.Key]))
	if token == "" {
		return "", fault.Operatorf("CredentialsMissing", "secret %s/%s has no key %s, or it is empty: set it to the token of the Git service", key.Namespace, key.Name, key.Key)
	}
	return token, nil
}

// credentials reads the App's Secret live, so that a changed key needs no restart.
func (r *Reconciler) credentials(ctx context.Context) (provider.Credentials, error) {
	secret, err := r.kube.Secrets(r.Namespace).Get(ctx, r.AppSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return provider.Credentials{}, fault.Operatorf("CredentialsMissing",
			"secret %s/%s does not exist: create it with the keys %s, %s and webhook.secret of the GitHub App", r.Namespace, r.AppSecret, keyAppID, keyPrivateKey)
	}
	if err != nil {
		return provider.Credentials{}, fault.FromKube(fault.VerbRead, fmt.Errorf("reading the GitHub App's secret: %w", err))
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(secret.Data[keyAppID])), 10, 64)
	if err != nil {
		return provider.Credentials{}, fault.Operatorf("CredentialsInvalid", "secret %s/%s: key %s is not a number: set it to the App's ID", r.Namespace, r.AppSecret, keyAppID)
	}
	key := secret.Data[keyPrivateKey]
	if len(key) == 0 {
		return provider.Credentials{}, fault.Operatorf("CredentialsInvalid", "secret %s/%s: key %s is empty: set it to the App's private key (PEM)", r.Namespace, r.AppSecret, keyPrivateKey)
	}
	return provider.Credentials{AppID: id, PrivateKey: key}, nil
}

// busyRetry is how soon an event that found its Git host's slots taken tries again.
const busyRetry = time.Second

// slots gives each Git host and installation at most a share of the workers, so that one that hangs cannot hold them
// all (B15). It is advice: losing it costs time, never truth.
type slots struct {
	mu    sync.Mutex
	limit int
	taken map[string]int
}

func newSlots(limit int) *slots {
	return &slots{limit: limit, taken: map[string]int{}}
}

// take returns the function that gives the slot back, or false when the key has none left.
func (s *slots) take(key string) (func(), bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[key] >= s.limit {
		return nil, false
	}
	s.taken[key]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[key]--; s.taken[key] <= 0 {
			delete(s.taken, key)
		}
	}, true
}
