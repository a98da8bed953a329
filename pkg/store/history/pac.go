// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// pacPage is how many PipelineRuns one read returns. One may have 1.5 MiB.
	pacPage = 10
	// maxPaCRuns bounds how many of Pipelines-as-Code's PipelineRuns of a commit are read. A pipeline
	// whose run is not read counts as one that did not run.
	maxPaCRuns = 200
)

// PipelineRuns reads the PipelineRuns of a namespace live.
type PipelineRuns interface {
	List(ctx context.Context, o metav1.ListOptions) (*pipelinev1.PipelineRunList, error)
}

// PaCRun is a PipelineRun that Pipelines-as-Code (PaC) has started. Nothing records it: it is known
// by its labels and annotations, which every user of its namespace can write. So a decision may
// leave out a start because of it, but never report its result, cancel it or delete it.
type PaCRun struct {
	// Name is the PipelineRun's; Pipeline is the name in its definition.
	Name, Pipeline      string
	Finished, Succeeded bool

	created metav1.Time
}

// PaCRunsOf says which of PaC's PipelineRuns are read.
type PaCRunsOf struct {
	// Repository is the name of the Repository, in the namespace that is read.
	Repository string
	// SHA is the commit, empty for every commit.
	SHA string
	// Pull is the pull request, 0 for a push; Ref is the branch or tag of a push.
	Pull int64
	Ref  string
}

// OfPaC returns PaC's PipelineRuns, the newest last. A copy of a PipelineRun of Plumbline is none.
func OfPaC(ctx context.Context, runs PipelineRuns, of PaCRunsOf) ([]PaCRun, error) {
	selector, err := of.selector()
	if err != nil {
		return nil, err
	}
	var found []PaCRun
	o := metav1.ListOptions{LabelSelector: selector, Limit: pacPage}
	for read := 0; read < maxPaCRuns; read += pacPage {
		page, err := runs.List(ctx, o)
		if err != nil {
			err = fmt.Errorf("listing the PipelineRuns of Pipelines-as-Code: %w", err)
			return nil, fault.FromKube(fault.VerbRead, err)
		}
		for i := range page.Items {
			if run := &page.Items[i]; of.has(run.Annotations) {
				found = append(found, PaCRun{
					Name:      run.Name,
					Pipeline:  run.Annotations[pipelinesascode.OriginalPRName],
					Finished:  run.IsDone(),
					Succeeded: run.Status.GetCondition(apis.ConditionSucceeded).IsTrue(),
					created:   run.CreationTimestamp,
				})
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			break
		}
	}
	slices.SortFunc(found, func(a, b PaCRun) int {
		return cmp.Or(a.created.Compare(b.created.Time), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

// selector selects by labels that PaC gives a PipelineRun when it creates it. Plumbline's have its
// own label, too.
func (of PaCRunsOf) selector() (string, error) {
	without := func(key string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}
	}
	wanted := metav1.LabelSelector{
		MatchLabels:      map[string]string{pipelinesascode.ManagedByLabel: pipelinesascode.ManagedBy},
		MatchExpressions: []metav1.LabelSelectorRequirement{without(plumbline.InstallationLabel)},
	}
	if of.SHA != "" { // a label has the end of a long value
		wanted.MatchLabels[pipelinesascode.SHA] = of.SHA[max(0, len(of.SHA)-validation.LabelValueMaxLength):]
	}
	if of.Pull != 0 {
		wanted.MatchLabels[pipelinesascode.PullRequest] = strconv.FormatInt(of.Pull, 10)
	} else {
		wanted.MatchExpressions = append(wanted.MatchExpressions, without(pipelinesascode.PullRequest))
	}
	selector, err := metav1.LabelSelectorAsSelector(&wanted)
	if err != nil {
		return "", fmt.Errorf("selecting the PipelineRuns of commit %q: %w", of.SHA, err)
	}
	return selector.String(), nil
}

// has reports whether a PipelineRun with these annotations is of the Repository, and of the branch
// or tag. PaC names a branch with or without "refs/heads/".
func (of PaCRunsOf) has(annotations map[string]string) bool {
	const branches = "refs/heads/"
	return annotations[pipelinesascode.Repository] == of.Repository && (of.Pull != 0 ||
		strings.TrimPrefix(annotations[pipelinesascode.Branch], branches) == strings.TrimPrefix(of.Ref, branches))
}
