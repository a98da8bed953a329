// SPDX-License-Identifier: Apache-2.0

// Package gitauth creates and renews the git-auth secrets that runs clone with, and revokes the
// tokens in them. Each run has its own token where the Git service mints tokens.
package gitauth

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/scope"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

const (
	// unknownLife stands for the life of a token whose service names no expiry: it may be replaced
	// anyway.
	unknownLife = time.Hour
	// minRenewal keeps a clock that is ahead of the service's from renewing without a pause.
	minRenewal = 5 * time.Second
	// leaveFor is how long after a run has finished an event tries to leave the secret to it
	// although that is forbidden: no event may wait for that for ever.
	leaveFor = 10 * time.Minute
	// revokeTimeout bounds the calls that revoke one run's tokens.
	revokeTimeout = 5 * time.Second
)

// Secrets writes the secrets.
type Secrets struct {
	client   corev1client.SecretsGetter
	scope    scope.Resolver
	unplaced *unplaced
	made     *made
}

// New returns a Secrets that has minted nothing yet.
func New(client corev1client.SecretsGetter, others scope.Resolver) Secrets {
	return Secrets{client, others, &unplaced{}, &made{}}
}

// Clear forgets which secrets this process has created: another process leads now, and may write
// them.
func (s Secrets) Clear() { s.made.clear() }

// Ensure creates a run's secret before the run is created, and returns when its token must be
// renewed. It keeps a secret that an earlier attempt has created while its token is fresh.
func (s Secrets) Ensure(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) (renewAt *metav1.Time, err error) {
	if run.SecretRenewAt != nil && a.Clock.Now().Before(run.SecretRenewAt.Time) {
		if there, err := s.there(ctx, a, run); err != nil || there {
			return run.SecretRenewAt, err
		}
	}
	fresh, err := s.Mint(ctx, a, run)
	if err != nil {
		return nil, err
	}
	secret := fresh.secret(a, run)
	at := holder{a.Event.UID, run.Secret}
	s.made.forget(at)
	_, err = s.client.Secrets(run.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	if err == nil {
		s.made.created(at, fresh.own())
	} else if apierrors.IsAlreadyExists(err) {
		err = s.patch(ctx, secret)
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbCreate, fmt.Errorf("creating secret %s/%s: %w", run.Namespace, run.Secret, err)).
			AsOwn()
	}
	s.unplaced.placed(a.Event.UID, run.Secret)
	return fresh.renewAt(a.Clock.Now()), nil
}

// there reports whether a run's secret exists and belongs to the current Repository. A recreated
// Repository has another UID, and the secret is deleted with the first.
func (s Secrets) there(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) (bool, error) {
	repository, err := owner(ctx, a)
	if err != nil {
		return false, err
	}
	secret, err := s.read(ctx, a, run)
	if secret == nil || err != nil {
		return false, err
	}
	return slices.ContainsFunc(secret.OwnerReferences,
		func(o metav1.OwnerReference) bool { return o.UID == repository.UID }), nil
}

// ask returns a secret. It sends a patch that changes nothing, which the API server answers without
// a write. The right to patch Secrets is there wherever runs are; the right to get them may be left
// out where Repositories name none.
func (s Secrets) ask(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return s.client.Secrets(namespace).Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
}

// read returns a run's secret, nil if there is none or if another installation created it.
func (s Secrets) read(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) (*corev1.Secret, error) {
	secret, err := s.ask(ctx, run.Namespace, run.Secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbPatch, fmt.Errorf("reading secret %s/%s: %w", run.Namespace, run.Secret, err)).
			AsOwn()
	}
	if resources.Foreign(secret, a.Event.Namespace) {
		return nil, nil
	}
	return secret, nil
}

// Renew writes the fresh token into a run's secret, and returns when it must be renewed. The run is
// an owner of its secret then.
func (s Secrets) Renew(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, fresh Grant) (*metav1.Time, error) {
	secret := fresh.secret(a, run)
	err := s.patch(ctx, secret)
	if apierrors.IsNotFound(err) { // a user deleted what the run still needs
		_, err = s.client.Secrets(run.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	}
	if err != nil {
		s.made.forget(holder{a.Event.UID, run.Secret}) // it may have succeeded
		return nil, fault.FromKube(fault.VerbPatch, fmt.Errorf("renewing secret %s/%s: %w", run.Namespace, run.Secret, err)).
			AsOwn()
	}
	s.made.renewed(holder{a.Event.UID, run.Secret}, fresh.own())
	s.unplaced.placed(a.Event.UID, run.Secret)
	return fresh.renewAt(a.Clock.Now()), nil
}

// Own makes an existing PipelineRun an owner of its secret, so that pods find the secret although
// the Repository is deleted meanwhile. The Repository stays an owner until the event settles: the
// deletion of a run must not delete tokens that must be revoked. It reports whether the secret
// exists.
func (s Secrets) Own(ctx context.Context, run *v1alpha1.Run) (there bool, err error) {
	_, err = s.client.Secrets(run.Namespace).
		Patch(ctx, run.Secret, types.StrategicMergePatchType, resources.AddRunOwnerPatch(run), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fault.FromKube(fault.VerbPatch, fmt.Errorf("giving secret %s/%s its run as an owner: %w", run.Namespace, run.Secret, err)).
			AsOwn()
	}
	return true, nil
}

// patch writes a fresh token into an existing secret, and makes the current Repository its owner: a
// recreated Repository has another UID. The previous token may be in use, so it stays in the secret
// and is revoked with the others.
func (s Secrets) patch(ctx context.Context, secret *corev1.Secret) error {
	before, err := s.ask(ctx, secret.Namespace, secret.Name)
	if err != nil {
		return err
	}
	if resources.Foreign(before, secret.Labels[plumbline.InstallationLabel]) {
		return fault.Operatorf(
			reasonForeignSecret,
			"secret %s/%s belongs to the installation in namespace %s, which has run the same delivery. Nothing needs to be done, unless it must run again. "+
				"In that case delete that installation's PipelineRun and the secret",
			secret.Namespace,
			secret.Name,
			before.Labels[plumbline.InstallationLabel],
		)
	}
	resources.KeepTokens(secret, before)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"ownerReferences": secret.OwnerReferences,
			"annotations":     secret.Annotations,
		},
		"data": secret.Data,
	})
	if err != nil {
		return err
	}
	_, err = s.client.Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Tokens returns the tokens in a run's secret that were minted for it and must be revoked, as far
// as this process or the secret knows them.
func (s Secrets) Tokens(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) ([]string, error) {
	if tokens, known := s.made.of(holder{a.Event.UID, run.Secret}); known {
		return tokens, nil
	}
	secret, err := s.read(ctx, a, run)
	if secret == nil || err != nil {
		return nil, err
	}
	return resources.OwnTokens(secret), nil
}

// Release is called when the event does not need a run's secret any more. The secret stays while
// the PipelineRun exists, so that people can start the same again with a console, and is deleted
// with it (compat 2.7, G4). Without a PipelineRun it is deleted. It is also deleted if it still
// cannot be changed leaveFor after the run finished. Revoked tokens are removed from it. Release
// may be repeated.
func (s Secrets) Release(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, revoked bool) error {
	s.made.forget(holder{a.Event.UID, run.Secret})
	if run.UID == "" {
		if secret, err := s.read(ctx, a, run); secret == nil || err != nil {
			return err
		}
	}
	if run.UID == "" || run.Result == nil || run.Result.Outcome == v1alpha1.OutcomeDeleted {
		return s.Delete(ctx, run.Namespace, run.Secret)
	}
	_, err := s.client.Secrets(run.Namespace).
		Patch(ctx, run.Secret, types.MergePatchType, resources.SecretOwnedByRunPatch(run, revoked), metav1.PatchOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	left := fault.FromKube(fault.VerbPatch, fmt.Errorf("leaving secret %s/%s to its run: %w", run.Namespace, run.Secret, err)).
		AsOwn()
	if ended := run.Result.CompletedAt; left.Class == fault.Operator &&
		(ended == nil || a.Clock.Since(ended.Time) >= leaveFor) {
		return s.Delete(ctx, run.Namespace, run.Secret)
	}
	return left
}

// Delete deletes a secret that may be gone already. It does nothing for an empty name.
func (s Secrets) Delete(ctx context.Context, namespace, name string) error {
	if name == "" {
		return nil
	}
	err := s.client.Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fault.FromKube(fault.VerbDelete, fmt.Errorf("deleting secret %s/%s: %w", namespace, name, err))
	}
	return nil
}

// Revoke revokes tokens of a run at the Git service. It may be repeated.
func Revoke(ctx context.Context, a *attempt.Attempt, tokens []string) error {
	ctx, cancel := context.WithTimeout(ctx, revokeTimeout)
	defer cancel()
	for _, token := range tokens {
		client, err := a.Git.Connect(ctx)
		if err != nil {
			return err
		}
		if err := client.RevokeToken(ctx, token); err != nil {
			return err
		}
	}
	return nil
}
