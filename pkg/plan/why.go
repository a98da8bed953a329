// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// explain returns the plan of a /why by a user who may give it. It starts and changes nothing: its
// decisions are the answer.
func (p *planner) explain(ctx context.Context) (*Plan, error) {
	made := p.end(v1alpha1.DispositionIgnored, p.spec.SHA, v1alpha1.Explained, "")
	if p.Explain != nil {
		decisions, err := p.Explain(ctx, p.spec.SHA, p.command.Names)
		if err != nil {
			return nil, fmt.Errorf("reading what became of commit %s: %w", p.spec.SHA, err)
		}
		made.Decisions = decisions
	}
	switch {
	case len(made.Decisions) > 0:
		made.Message = "the answer is in the comment"
	case p.namesPipelines():
		made.Message = fmt.Sprintf("No event of this commit is about %s. Write the command without names to see all.",
			listed(p.command.Names))
	default:
		made.Message = "No event of this commit is on record: its webhook has not arrived, or the record was deleted. " +
			"Push again, or start the pipelines with /test."
	}
	return made, nil
}
