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

// Repository returns the Repository of the event, or nil without an error if a live read says that
// it is gone or names another URL. The URL may be spelt differently, e.g. with .git. Do not change
// the object: it may be a cache's.
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

// hasWebhook reports whether the event's Repository names a token and a webhook secret.
func (s *Session) hasWebhook(ctx context.Context) (bool, error) {
	repository, err := s.Repository(ctx)
	if repository == nil || err != nil {
		return false, err
	}
	global, err := s.pool.global(ctx)
	if err != nil {
		return false, err
	}
	service, err := pacv1alpha1.ServiceOf(repository, global)
	return err == nil && service.HasWebhook(), nil
}

// RepositoryGone reports whether a live read says that the event's Repository is gone. It is false
// after another error.
func (s *Session) RepositoryGone(ctx context.Context) bool {
	ref := s.event.Spec.Repository
	_, err := s.pool.options.Repositories.Repositories(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	return fault.Gone(err)
}

// WithGlobal returns a copy of the Repository with the settings of the global one added, or the
// Repository itself if there are none.
func (s *Session) WithGlobal(ctx context.Context, repository *pacv1alpha1.Repository) (*pacv1alpha1.Repository, error) {
	global, err := s.pool.global(ctx)
	if err != nil || global == nil || global.UID == repository.UID {
		return repository, err
	}
	merged := repository.DeepCopy()
	merged.Spec = *repository.Spec.WithGlobal(&global.Spec)
	return merged, nil
}

// global returns the global Repository, nil if there certainly is none. If its settings cannot be
// read, events are not processed without them (B9).
func (p *Pool) global(ctx context.Context) (*pacv1alpha1.Repository, error) {
	o := &p.options
	if o.GlobalRepository == "" {
		return nil, nil
	}
	global, err := o.Cache.Repositories(o.Namespace).Get(o.GlobalRepository)
	if err == nil {
		return global, nil
	}
	now := o.Clock.Now() // the cache may lag: only a live answer counts
	if p.absent.recent(now) {
		return nil, nil
	}
	global, err = o.Repositories.Repositories(o.Namespace).Get(ctx, o.GlobalRepository, metav1.GetOptions{})
	if fault.Gone(err) {
		p.absent.note(now)
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead,
			fmt.Errorf("reading the global Repository %s/%s: %w", o.Namespace, o.GlobalRepository, err))
	}
	return global, nil
}
