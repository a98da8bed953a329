// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/tekton"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// guessed has one value for all secrets.
func guessed(secrets map[string]string, value string) map[string]string {
	all := map[string]string{}
	for marker := range secrets {
		all[marker] = value
	}
	return all
}

// filled is the PipelineRun of a run with its secrets.
func filled(run plan.Run, secrets map[string]string) (*pipelinev1.PipelineRun, error) {
	run.Manifest = template.Fill(run.Manifest, secrets)
	return run.PipelineRun()
}

// Judge says of each PipelineRun that would be refused when it is created that it does not start,
// and why.
func (r *Report) Judge(ctx context.Context) error {
	for _, run := range r.runs {
		refusal, err := run.judge(ctx)
		if err != nil {
			return err
		}
		if refusal == nil {
			continue
		}
		for i := range r.Pipelines {
			if row := &r.Pipelines[i]; row.PipelineRun != nil && row.PipelineRun.Name == run.shown.Name {
				row.Starts, row.PipelineRun, row.Why = No, nil, refusal.Message
				row.Error = &Error{
					Place:  r.sources.Field(row.File, row.Document, refusal.Path),
					Reason: reasonRefused, Message: refusal.Message,
				}
			}
		}
	}
	return nil
}

// judge returns why it would be refused whatever its secrets are, nil if it would not.
func (p *planned) judge(ctx context.Context) (first *tekton.Refusal, err error) {
	for i, guess := range p.guesses {
		refusal, err := tekton.Judge(ctx, guess)
		if err != nil || refusal == nil || i > 0 && refusal.Message != first.Message {
			return nil, err
		}
		first = refusal
	}
	return first, nil
}
