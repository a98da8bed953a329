// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"
	"sync"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Superseding returns the commit that has replaced spec.SHA, "" while none has (B11).
//
// A session makes that request at most once, with the spec of the first call. It makes none unless
// waited says that the calling step has waited before, or another step has called it already. So an
// event that does not wait costs no request. Nothing supersedes a spec without SHA, which is that
// of a comment before it is planned, nor a re-run or a request to /incoming: its sender wants it.
func (s *Session) Superseding(ctx context.Context, spec *v1alpha1.GitEventSpec, waited bool) (sha string, err error) {
	if s.asked.newer == nil && !waited || spec.SHA == "" || spec.Rerun != nil || spec.Incoming != nil {
		return "", nil
	}
	if s.asked.newer == nil {
		s.asked.newer = sync.OnceValues(func() (string, error) { return s.supersedes(ctx, spec) })
	}
	return s.asked.newer()
}

// Tip returns the head of the event's pull request or branch, "" if there is none (provider.Tips).
// A session makes that request at most once, with the spec of the first call.
func (s *Session) Tip(ctx context.Context, spec *v1alpha1.GitEventSpec) (sha string, err error) {
	if s.asked.tip == nil {
		s.asked.tip = sync.OnceValues(func() (string, error) {
			client, err := s.Connect(ctx)
			if err != nil {
				return "", err
			}
			if sha, err = client.Tip(ctx, spec); err != nil {
				return "", fmt.Errorf("asking what is newest of %s: %w", spec.Ref(), err)
			}
			return sha, nil
		})
	}
	return s.asked.tip()
}

func (s *Session) supersedes(ctx context.Context, spec *v1alpha1.GitEventSpec) (string, error) {
	client, err := s.Connect(ctx)
	if err != nil {
		return "", err
	}
	sha, err := client.Supersedes(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("asking what has superseded commit %s: %w", spec.SHA, err)
	}
	if sha == spec.Before { // a replica of the Git service does not have the push yet
		return "", nil
	}
	return sha, nil
}
