// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/reply"
)

// Reply answers the event's command, if it has one.
func (s *Step) Reply(ctx context.Context, a *attempt.Attempt) error {
	return s.comments().Do(ctx, a)
}

// Validation writes the comment about the errors in the files of .tekton, if there are any.
func (s *Step) Validation(ctx context.Context, a *attempt.Attempt) error {
	return s.comments().Validation(ctx, a)
}

// Failures writes the comment about the failed pipelines, if the Repository asks for it. It writes
// none if each failed pipeline has a comment anyway.
func (s *Step) Failures(ctx context.Context, a *attempt.Attempt) error {
	if service, _ := provider.For(s.Providers, &a.Event.Spec); service.Comments {
		return nil
	}
	return s.comments().Failures(ctx, a)
}

func (s *Step) comments() *reply.Step {
	limited := func(event *v1alpha1.GitEvent, now time.Time) time.Duration {
		if !event.Status.Reply.Untrusted {
			return s.Pending.Explain(PendingReportOf(event), now)
		}
		return s.Pending.Reply(PendingReportOf(event), now)
	}
	return &reply.Step{
		Events: s.Events, Identity: s.Identity, Late: s.late(), Limited: limited, Clean: &s.clean,
	}
}
