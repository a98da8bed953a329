// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"slices"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// maxAnnotations is how many annotations GitHub takes in one request
// (https://docs.github.com/rest/checks/runs#update-a-check-run).
const maxAnnotations = 50

// Annotate adds the annotations that the check run does not have. GitHub appends those of each
// request, and only our App writes this check run, so their number says which are missing.
func (r *repository) Annotate(ctx context.Context, id string, check status.Check, lines []v1alpha1.SourceLine) error {
	run, err := r.get(ctx, parsed(id))
	if err != nil || run == nil {
		return err
	}
	if run.Output == nil || run.Output.AnnotationsCount == nil {
		return noAnswer("counting the annotations of the check")
	}
	have := min(run.Output.GetAnnotationsCount(), len(lines))
	for some := range slices.Chunk(lines[have:], maxAnnotations) {
		body := checkRun{Output: makeOutput(check)} // GitHub requires a title and a summary
		for _, line := range some {
			body.Output.Annotations = append(body.Output.Annotations, annotation(line))
		}
		if _, err := r.write(
			ctx, "adding annotations to the check", http.MethodPatch, r.runPath(run.GetID()), body,
		); err != nil {
			return err
		}
	}
	return nil
}

func annotation(line v1alpha1.SourceLine) *gh.CheckRunAnnotation {
	return &gh.CheckRunAnnotation{
		Path: gh.String(line.Path), StartLine: gh.Int(int(line.Line)), EndLine: gh.Int(int(line.Line)),
		AnnotationLevel: gh.String("failure"), Message: gh.String(line.Message),
	}
}
