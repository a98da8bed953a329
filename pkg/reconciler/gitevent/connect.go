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
	credentials, err := w.r.credentials(ctx)
	if err != nil {
		return nil, err
	}
	credentials.InstallationID = spec.InstallationID
	client, err := service.Connect(ctx, w.config.GitHubURL, spec.Project, credentials)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", spec.Host, err)
	}
	w.client = &client
	return w.client, nil
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
