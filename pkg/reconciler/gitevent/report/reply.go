// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/attempt"
	"github.com/plumbline-ci/plumbline/pkg/replying"
)

// Reply answers the command that the event is, if it is one.
func (s *Step) Reply(ctx context.Context, a *attempt.Attempt) error {
	step := replying.Step{Events: s.Events, Identity: s.Identity, Late: s.late()}
	return step.Do(ctx, a)
}
