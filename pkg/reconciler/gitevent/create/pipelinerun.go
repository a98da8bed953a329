// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"fmt"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// createOrAdopt creates a PipelineRun after prepare succeeded. It returns the existing one if an
// earlier creation succeeded and its answer was lost.
func createOrAdopt(
	ctx context.Context, runs tektonv1.PipelineRunInterface, manifest *pipelinev1.PipelineRun,
	prepare func(context.Context) error,
) (*pipelinev1.PipelineRun, error) {
	err := prepare(ctx)
	if err == nil {
		created, refused := runs.Create(ctx, manifest, metav1.CreateOptions{})
		if refused == nil {
			return created, nil
		}
		if apierrors.IsAlreadyExists(refused) {
			return adopt(ctx, runs, manifest)
		}
		err = fault.FromKube(fault.VerbCreate, refused)
	}
	if inconclusive(err) {
		return existing(ctx, runs, manifest, err)
	}
	return nil, err
}

// adopt returns the PipelineRun of the planned name if it is ours: an earlier creation succeeded.
// It does not change a PipelineRun that is not ours (C10).
func adopt(
	ctx context.Context, runs tektonv1.PipelineRunInterface, manifest *pipelinev1.PipelineRun,
) (*pipelinev1.PipelineRun, error) {
	found, err := runs.Get(ctx, manifest.Name, metav1.GetOptions{})
	if err != nil {
		return nil, unread("reading", manifest.Namespace, manifest.Name, err)
	}
	if !sameRun(found, manifest) {
		return nil, fault.Operatorf(reasonForeignPipelineRun,
			"PipelineRun %s/%s exists and is not this event's (annotation %s differs): delete or rename it", manifest.Namespace,
			manifest.Name, plumbline.RunKeyAnnotation)
	}
	return found, nil
}

// inconclusive reports whether a refused creation says nothing about an earlier one whose answer
// was lost. Admission decides before the API server checks whether the name is taken, and that very
// PipelineRun may have exhausted a quota.
func inconclusive(err error) bool {
	f := fault.Of(err)
	return f != nil &&
		(f.Class == fault.Invalid || f.Reason == fault.ReasonQuota ||
			f.Reason == fault.ReasonDenialEchoesOutage || neverCreatable(f.Reason))
}

// existing returns our PipelineRun of the planned name if it exists although its creation was
// refused, else the refusal.
func existing(
	ctx context.Context, runs tektonv1.PipelineRunInterface, manifest *pipelinev1.PipelineRun, refusal error,
) (*pipelinev1.PipelineRun, error) {
	found, err := find(ctx, runs, manifest.Namespace, manifest.Name)
	if err != nil {
		return nil, err
	}
	if found == nil || !sameRun(found, manifest) {
		return nil, refusal
	}
	return found, nil
}

// cancelled returns a fault that judge turns into the cancellation of a run that must not be
// created. If an earlier creation succeeded but was not recorded, it returns that PipelineRun, and
// pkg/reconciler/gitevent/cancel cancels it. All run keys of the event have the prefix keys.
func cancelled(
	ctx context.Context, runs tektonv1.PipelineRunInterface, run *v1alpha1.Run, keys string, why *v1alpha1.Cancellation,
) (*pipelinev1.PipelineRun, error) {
	found, err := find(ctx, runs, run.Namespace, run.Name)
	if err != nil {
		return nil, err
	}
	if found == nil || !strings.HasPrefix(found.Annotations[plumbline.RunKeyAnnotation], keys) {
		return nil, fault.Ignoredf(attempt.ReasonCancelled, "cancelled: %s", why.Why)
	}
	return found, nil
}

// superseded returns a fault that judge turns into a cancellation if the commit sha has replaced
// the run's, which waited to be created. A PipelineRun that exists is not ended: it is adopted and
// reported. An empty sha means that nothing has replaced it.
func superseded(ctx context.Context, runs tektonv1.PipelineRunInterface, run *v1alpha1.Run, sha string) error {
	if sha == "" {
		return nil
	}
	found, err := find(ctx, runs, run.Namespace, run.Name)
	if found != nil || err != nil {
		return err
	}
	return fault.Ignoredf(attempt.ReasonSuperseded, "%s", attempt.SupersededBy(sha))
}

// sameRun reports whether a PipelineRun has the run key of a manifest.
func sameRun(found, manifest *pipelinev1.PipelineRun) bool {
	return found.Annotations[plumbline.RunKeyAnnotation] == manifest.Annotations[plumbline.RunKeyAnnotation]
}

// find returns the PipelineRun of a name, nil if there is none.
func find(
	ctx context.Context, runs tektonv1.PipelineRunInterface, namespace, name string,
) (*pipelinev1.PipelineRun, error) {
	found, err := runs.Get(ctx, name, metav1.GetOptions{})
	switch {
	case fault.Gone(err):
		return nil, nil
	case err != nil:
		return nil, unread("looking for", namespace, name, err)
	}
	return found, nil
}

func unread(doing, namespace, name string, err error) error {
	return fault.FromKube(fault.VerbRead, fmt.Errorf("%s PipelineRun %s/%s: %w", doing, namespace, name, err))
}
