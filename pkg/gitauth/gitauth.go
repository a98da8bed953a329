// SPDX-License-Identifier: Apache-2.0

// Package gitauth makes, renews and deletes the git-auth secrets that runs clone with.
package gitauth

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/attempt"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/resources"
)

const (
	// unknownLife stands for the life of a token whose service names no end: it may be replaced all the same.
	unknownLife = time.Hour
	// minRenewal keeps a clock that runs ahead of the service's from renewing without a pause.
	minRenewal = 5 * time.Second
)

// Grant is what a git-auth secret is made of: its owner and a token.
type Grant struct {
	repository *pacv1alpha1.Repository
	token      provider.Token
}

// Mint asks the Git service for a token for the event's repository.
func Mint(ctx context.Context, a *attempt.Attempt) (Grant, error) {
	repository, err := a.Git.Repository(ctx)
	if err != nil {
		return Grant{}, err
	}
	if repository == nil {
		ref := a.Event.Spec.Repository
		return Grant{}, fault.Operatorf(credentials.ReasonRepositoryGone, "Repository %s/%s is gone: its run cannot be given credentials", ref.Namespace, ref.Name)
	}
	client, err := a.Git.Connect(ctx)
	if err != nil {
		return Grant{}, err
	}
	token, err := client.CloneToken(ctx)
	if err != nil {
		return Grant{}, fmt.Errorf("minting a token for the run: %w", err)
	}
	return Grant{repository, token}, nil
}

func (g Grant) secret(a *attempt.Attempt, run *v1alpha1.Run) *corev1.Secret {
	return resources.MakeGitAuthSecret(resources.SecretInput{
		Event: a.Event, Repository: g.repository, Name: run.Secret, Namespace: run.Namespace, Token: g.token.Value, User: g.token.User,
	})
}

// renewAt is when half of the token's remaining life is over: the other half is for outages and for clocks that differ.
func (g Grant) renewAt(now time.Time) *metav1.Time {
	left := unknownLife
	if !g.token.ExpiresAt.IsZero() {
		left = g.token.ExpiresAt.Sub(now)
	}
	at := metav1.NewTime(now.Add(max(minRenewal, left/2)).Truncate(time.Second))
	return &at
}

// Secrets writes the secrets.
type Secrets struct{ Client corev1client.SecretsGetter }

// Create makes a run's secret. One that exists under the run's own name is from an earlier attempt and gets the fresh token.
func (s Secrets) Create(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, fresh Grant) error {
	secret := fresh.secret(a, run)
	_, err := s.Client.Secrets(run.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = s.patch(ctx, secret)
	}
	if err != nil {
		return fault.FromKube(fault.VerbCreate, fmt.Errorf("creating secret %s/%s: %w", run.Namespace, run.Secret, err)).AsOwn()
	}
	run.SecretRenewAt = fresh.renewAt(a.Clock.Now())
	return nil
}

// Renew gives a run's secret the fresh token.
func (s Secrets) Renew(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, fresh Grant) error {
	secret := fresh.secret(a, run)
	err := s.patch(ctx, secret)
	if apierrors.IsNotFound(err) { // somebody deleted what the run still needs
		_, err = s.Client.Secrets(run.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	}
	if err != nil {
		return fault.FromKube(fault.VerbPatch, fmt.Errorf("renewing secret %s/%s: %w", run.Namespace, run.Secret, err)).AsOwn()
	}
	run.SecretRenewAt = fresh.renewAt(a.Clock.Now())
	return nil
}

// patch gives a secret that exists a fresh token, and the Repository as it is now for its owner: one that was deleted and
// made again has another UID.
func (s Secrets) patch(ctx context.Context, secret *corev1.Secret) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"ownerReferences": secret.OwnerReferences}, "data": secret.Data,
	})
	if err != nil {
		return err
	}
	_, err = s.Client.Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
