// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/client/informers/externalversions"
	pipelineclient "github.com/tektoncd/pipeline/pkg/client/injection/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// RunSelector returns the label selector of the PipelineRuns that the installation in a namespace still waits for. It writes
// the label "completed" once the Git service has accepted a run's final report. Anybody else may write it too: a run that
// leaves the watch has neither been deleted for that, nor is it over.
func RunSelector(namespace string) string {
	return plumbline.InstallationLabel + "=" + namespace + "," + pipelinesascode.State + "!=" + pipelinesascode.StateCompleted
}

// RunInformer returns the informer of the runs; whoever calls it starts it. What it holds is trimmed.
func RunInformer(ctx context.Context, namespace string) cache.SharedIndexInformer {
	factory := externalversions.NewSharedInformerFactoryWithOptions(pipelineclient.Get(ctx), controller.GetResyncPeriod(ctx),
		externalversions.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = RunSelector(namespace) }),
		externalversions.WithTransform(trim))
	return factory.Tekton().V1().PipelineRuns().Informer()
}

// TrimRun returns what the cache keeps of a run, whoever made it: its names, the event that it is of, whether it is wanted,
// has begun, is over or is being deleted. What has no bound is left out (spec/security.md S9); who needs it, e.g. the
// tasks for a report, reads the run.
func TrimRun(run *pipelinev1.PipelineRun) *pipelinev1.PipelineRun {
	kept := &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: run.Name, UID: run.UID, ResourceVersion: run.ResourceVersion,
			DeletionTimestamp: run.DeletionTimestamp,
			Labels:            map[string]string{plumbline.EventLabel: run.Labels[plumbline.EventLabel]},
		},
		Spec: pipelinev1.PipelineRunSpec{Status: run.Spec.Status},
	}
	kept.Status.StartTime, kept.Status.CompletionTime = run.Status.StartTime, run.Status.CompletionTime
	if c := run.Status.GetCondition(apis.ConditionSucceeded); c != nil {
		kept.Status.Conditions = append(kept.Status.Conditions, *c)
	}
	return kept
}

// trim is TrimRun for an informer, which also hands over what it has missed the deletion of.
func trim(obj any) (any, error) {
	if run, ok := obj.(*pipelinev1.PipelineRun); ok {
		return TrimRun(run), nil
	}
	return obj, nil
}
