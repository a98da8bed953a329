// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/resources"
	"github.com/plumbline-ci/plumbline/pkg/retry"
)

const (
	// renewLimit bounds one renewal, so that the steps after it have their time.
	renewLimit = 10 * time.Second
	// unknownLife stands for the life of a token whose service names no end: it may be replaced all the same.
	unknownLife = time.Hour
	// minRenewal keeps a clock that runs ahead of the service's from renewing without a pause.
	minRenewal = 5 * time.Second
)

// grant is what a git-auth secret is made of: its owner and a token.
type grant struct {
	repository *pacv1alpha1.Repository
	token      provider.Token
}

func (r *Reconciler) grant(ctx context.Context, w *work) (grant, error) {
	repository, err := w.session.Repository(ctx)
	if err != nil {
		return grant{}, err
	}
	if repository == nil {
		ref := w.event.Spec.Repository
		return grant{}, fault.Operatorf(credentials.ReasonRepositoryGone, "Repository %s/%s is gone: its run cannot be given credentials", ref.Namespace, ref.Name)
	}
	client, err := w.session.Connect(ctx)
	if err != nil {
		return grant{}, err
	}
	token, err := client.CloneToken(ctx)
	if err != nil {
		return grant{}, fmt.Errorf("minting a token for the run: %w", err)
	}
	return grant{repository, token}, nil
}

func (g grant) secret(w *work, run *v1alpha1.Run) *corev1.Secret {
	return resources.MakeGitAuthSecret(resources.SecretInput{
		Event: w.event, Repository: g.repository, Name: run.Secret, Namespace: run.Namespace, Token: g.token.Value, User: g.token.User,
	})
}

// renewAt is when half of the token's remaining life is over: the other half is for outages and for clocks that differ.
func (w *work) renewAt(token provider.Token) *metav1.Time {
	now := w.r.clock.Now()
	left := unknownLife
	if !token.ExpiresAt.IsZero() {
		left = token.ExpiresAt.Sub(now)
	}
	at := metav1.NewTime(now.Add(max(minRenewal, left/2)).Truncate(time.Second))
	return &at
}

// renew gives the secrets of the runs that go on a fresh token before the one in them expires: a pod may clone late in a
// long run. Nothing waits for it, and no report tells of it.
func (r *Reconciler) renew(ctx context.Context, w *work) error {
	runs, untried := w.toRenew()
	if len(runs) == 0 {
		return untried
	}
	return w.due(stepRenew, func() error {
		ctx, cancel := context.WithTimeout(ctx, renewLimit)
		defer cancel()
		fresh, failed := r.grant(ctx, w)
		faults := []error{untried}
		for _, run := range runs {
			faults = append(faults, w.try(renewed(run), func() error {
				if failed != nil { // with each run: none of them is renewed before the next token
					return failed
				}
				return r.renewRun(ctx, w, run, fresh)
			}))
		}
		return first(faults)
	})
}

// renewed is the step of renewing one run's secret.
func renewed(run *v1alpha1.Run) retry.Step { return retry.Step{Name: stepRenew, Of: run.Name} }

func (r *Reconciler) renewRun(ctx context.Context, w *work, run *v1alpha1.Run, fresh grant) error {
	secret := fresh.secret(w, run)
	err := r.patchSecret(ctx, secret)
	if apierrors.IsNotFound(err) { // somebody deleted what the run still needs
		_, err = r.kube.Secrets(run.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	}
	if err != nil {
		return asOwn(fault.FromKube(fault.VerbPatch, fmt.Errorf("renewing secret %s/%s: %w", run.Namespace, run.Secret, err)))
	}
	run.SecretRenewAt = w.renewAt(fresh.token)
	return nil
}

// patchSecret gives a secret that exists a fresh token, and the Repository as it is now for its owner: one that was
// deleted and made again has another UID.
func (r *Reconciler) patchSecret(ctx context.Context, secret *corev1.Secret) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"ownerReferences": secret.OwnerReferences}, "data": secret.Data,
	})
	if err != nil {
		return err
	}
	_, err = r.kube.Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// mounts tells whether pods of the run may still need its secret.
func mounts(run *v1alpha1.Run) bool { return run.Secret != "" && run.UID != "" && run.Result == nil }

// toRenew are the runs whose secrets are to get a fresh token now, and what stands for those where that has just failed.
func (w *work) toRenew() (runs []*v1alpha1.Run, untried error) {
	for i := range w.event.Status.Runs {
		run := &w.event.Status.Runs[i]
		if !mounts(run) || run.SecretRenewAt != nil && w.r.clock.Now().Before(run.SecretRenewAt.Time) {
			continue
		}
		if err := w.failedJustNow(renewed(run)); err != nil {
			untried = err
			continue
		}
		runs = append(runs, run)
	}
	return runs, untried
}

// wakeToRenew makes the queue come back for the next renewal. It does so beside the reconcile's outcome: the backoff of
// another step must not delay it, and a reconcile in which all went well must count as one.
func (w *work) wakeToRenew() {
	now := w.r.clock.Now()
	var next time.Duration
	for i := range w.event.Status.Runs {
		run := &w.event.Status.Runs[i]
		if !mounts(run) || run.SecretRenewAt == nil || !run.SecretRenewAt.After(now) {
			continue // what is due has just failed, and its error brings us back
		}
		if left := run.SecretRenewAt.Sub(now); next == 0 || left < next {
			next = left
		}
	}
	if next > 0 {
		w.r.wake(w.event.Name, next)
	}
}
