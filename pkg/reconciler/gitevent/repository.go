// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// repository returns the Repository of the event, or nil when it is certain that it is gone. Its URL may be spelt otherwise
// now: with .git, say.
func (r *Reconciler) repository(ctx context.Context, w *work) (*pacv1alpha1.Repository, error) {
	ref := w.event.Spec.Repository
	found, err := r.repositories.Repositories(ref.Namespace).Get(ref.Name)
	if err != nil || !v1alpha1.SameURL(found.Spec.URL, ref.URL) { // the cache may lag: only a live answer counts
		found, err = r.pac.Repositories(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading Repository %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	if !v1alpha1.SameURL(found.Spec.URL, ref.URL) {
		return nil, nil
	}
	return found, nil
}

// withGlobal returns the Repository completed by the global one.
func (r *Reconciler) withGlobal(ctx context.Context, repository *pacv1alpha1.Repository) (*pacv1alpha1.Repository, error) {
	global, err := r.global(ctx)
	if err != nil || global == nil || global.UID == repository.UID {
		return repository, err
	}
	merged := repository.DeepCopy()
	merged.Spec = *repository.Spec.WithGlobal(&global.Spec)
	return merged, nil
}

// global returns the global Repository, nil when there is none. That must be certain: an event is never processed as if
// settings did not exist that could not be read (B9).
func (r *Reconciler) global(ctx context.Context) (*pacv1alpha1.Repository, error) {
	if r.GlobalRepository == "" {
		return nil, nil
	}
	global, err := r.repositories.Repositories(r.Namespace).Get(r.GlobalRepository)
	if err != nil { // the cache may lag: only a live answer counts
		global, err = r.pac.Repositories(r.Namespace).Get(ctx, r.GlobalRepository, metav1.GetOptions{})
	}
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading the global Repository %s/%s: %w", r.Namespace, r.GlobalRepository, err))
	}
	return global, nil
}
