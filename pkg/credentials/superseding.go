// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"
	"sync"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Superseding returns the commit that has taken the place of spec.SHA, "" while none has (B11). The
// Git service is asked once a session, and only if waited says that the asking step has waited
// before, or if another step has asked already: an event that nothing stops costs no call, and what
// it starts is true when it starts. A spec without SHA, a comment that is not planned yet, is about
// the head of that moment, and nothing supersedes it; nor a re-run, which somebody wants of this
// very commit. The spec of the first question counts; it is the event's with the planned commit,
// and it is not changed.
func (s *Session) Superseding(ctx context.Context, spec *v1alpha1.GitEventSpec, waited bool) (sha string, err error) {
	if s.asked.newer == nil && !waited || spec.SHA == "" || spec.Rerun != nil {
		return "", nil
	}
	if s.asked.newer == nil {
		s.asked.newer = sync.OnceValues(func() (string, error) { return s.supersedes(ctx, spec) })
	}
	return s.asked.newer()
}

// Tip returns the commit that the pull request or branch of the event is at now, "" if there is
// none (provider.Tips). The Git service is asked once a session. The spec of the first question
// counts; it is the event's with what its plan has found out.
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
	if sha == spec.Before { // a replica of the Git service has not heard of the push yet
		return "", nil
	}
	return sha, nil
}
