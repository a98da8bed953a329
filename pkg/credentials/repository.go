// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Repository returns the Repository of the event, or nil without an error when it is certain that
// it is gone: a live read says so, or that it names another URL now. Its URL may be spelt
// otherwise: with .git, say. The object may be a cache's, so it is not to be changed.
func (s *Session) Repository(ctx context.Context) (*pacv1alpha1.Repository, error) {
	ref, o := s.event.Spec.Repository, &s.pool.options
	found, err := o.Cache.Repositories(ref.Namespace).Get(ref.Name)
	if err != nil || !v1alpha1.SameURL(found.Spec.URL, ref.URL) { // the cache may lag: only a live answer counts
		found, err = o.Repositories.Repositories(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
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

// RepositoryGone asks the API server whether the event's Repository exists. It is true if that is
// certain to be gone, whatever the cache says; an error is no answer.
func (s *Session) RepositoryGone(ctx context.Context) bool {
	ref := s.event.Spec.Repository
	_, err := s.pool.options.Repositories.Repositories(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	return fault.Gone(err)
}

// WithGlobal returns the Repository completed by the global one: a copy, or the Repository itself
// if nothing completes it.
func (s *Session) WithGlobal(ctx context.Context, repository *pacv1alpha1.Repository) (*pacv1alpha1.Repository, error) {
	global, err := s.pool.global(ctx)
	if err != nil || global == nil || global.UID == repository.UID {
		return repository, err
	}
	merged := repository.DeepCopy()
	merged.Spec = *repository.Spec.WithGlobal(&global.Spec)
	return merged, nil
}

// global returns the global Repository, nil when there is none. That must be certain: an event is
// never processed as if settings did not exist that could not be read (B9).
func (k *Pool) global(ctx context.Context) (*pacv1alpha1.Repository, error) {
	o := &k.options
	if o.GlobalRepository == "" {
		return nil, nil
	}
	global, err := o.Cache.Repositories(o.Namespace).Get(o.GlobalRepository)
	if err == nil {
		return global, nil
	}
	now := o.Clock.Now() // the cache may lag: only a live answer counts
	if k.absent.recent(now) {
		return nil, nil
	}
	global, err = o.Repositories.Repositories(o.Namespace).Get(ctx, o.GlobalRepository, metav1.GetOptions{})
	if fault.Gone(err) {
		k.absent.note(now)
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(
			fault.VerbRead,
			fmt.Errorf("reading the global Repository %s/%s: %w", o.Namespace, o.GlobalRepository, err),
		)
	}
	return global, nil
}
