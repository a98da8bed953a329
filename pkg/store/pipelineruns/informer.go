// SPDX-License-Identifier: Apache-2.0

// Package pipelineruns caches the PipelineRuns that are not finished and reported, and reads their
// TaskRuns.
package pipelineruns

import (
	"context"
	"slices"
	"sync"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/client/informers/externalversions"
	pipelineclient "github.com/tektoncd/pipeline/pkg/client/injection/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// RunSelector returns the label selector of the PipelineRuns that the installation in a namespace
// still waits for: those without the label "completed" or "reported", one of which it writes once
// the Git service has accepted a run's final report. Other users may write the labels, too. So a
// run that leaves the watch may still exist and be running.
func RunSelector(namespace string) string {
	return plumbline.InstallationLabel + "=" + namespace + "," +
		pipelinesascode.State + "!=" + pipelinesascode.StateCompleted + "," +
		plumbline.ReportedLabel + "!=" + plumbline.Reported
}

// Runs is one informer of PipelineRuns, shared by the controllers of a process.
type Runs struct {
	namespace string
	once      sync.Once
	informer  cache.SharedIndexInformer
}

// NewRuns returns the informer of the installation in a namespace. It lists nothing before it is
// started.
func NewRuns(namespace string) *Runs { return &Runs{namespace: namespace} }

// Informer returns the informer. The first call creates it with the client in ctx.
func (r *Runs) Informer(ctx context.Context) cache.SharedIndexInformer {
	r.once.Do(func() { r.informer = RunInformer(ctx, r.namespace) })
	return r.informer
}

// RunInformer returns an informer of the runs, trimmed. The caller starts it.
func RunInformer(ctx context.Context, namespace string) cache.SharedIndexInformer {
	factory := externalversions.NewSharedInformerFactoryWithOptions(pipelineclient.Get(ctx),
		controller.GetResyncPeriod(ctx),
		externalversions.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = RunSelector(namespace) }),
		externalversions.WithTransform(trim))
	return factory.Tekton().V1().PipelineRuns().Informer()
}

// TrimRun returns the part of a run that is cached: its names, its event, and whether it is wanted,
// has started, has finished or is being deleted. Of a finished run it has the tasks that a report
// names. Fields without a limit are left out (S9); code that needs them reads the run, e.g. for the
// tasks of one that is not Reportable.
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
	if run.IsDone() {
		keepTasks(kept, run)
	}
	return kept
}

const (
	// maxTasks is how many tasks a finished run may have so that they are cached. Each takes some
	// 200 bytes until the report is accepted.
	maxTasks = 20
	// maxTaskName is longer than the name of any task, because Tekton uses these names as labels.
	maxTaskName = 253
	// leftOut is the annotation of a trimmed run without its tasks. On a run that a user gives this
	// annotation, it costs a read.
	leftOut = "plumbline.dev/tasks-left-out"
)

// Reportable reports whether a run, which may be trimmed, has all that a report says of its tasks.
func Reportable(run *pipelinev1.PipelineRun) bool { return run.Annotations[leftOut] == "" }

// keepTasks adds the tasks that have a TaskRun, and those that were skipped.
func keepTasks(kept, run *pipelinev1.PipelineRun) {
	long := !Reportable(run) || len(run.Status.ChildReferences)+len(run.Status.SkippedTasks) > maxTasks
	text := func(s string) string {
		long = long || len(s) > maxTaskName
		return s
	}
	children := slices.Grow(
		[]pipelinev1.ChildStatusReference(nil),
		len(run.Status.ChildReferences),
	) // without room for more
	for _, child := range run.Status.ChildReferences {
		children = append(children, pipelinev1.ChildStatusReference{
			TypeMeta: runtime.TypeMeta{Kind: text(child.Kind)},
			Name:     text(child.Name), DisplayName: text(child.DisplayName), PipelineTaskName: text(child.PipelineTaskName),
		})
	}
	skipped := slices.Grow([]pipelinev1.SkippedTask(nil), len(run.Status.SkippedTasks))
	for _, task := range run.Status.SkippedTasks {
		skipped = append(skipped,
			pipelinev1.SkippedTask{Name: text(task.Name), Reason: pipelinev1.SkippingReason(text(string(task.Reason)))})
	}
	if long {
		kept.Annotations = map[string]string{leftOut: "true"}
		return
	}
	kept.Status.ChildReferences, kept.Status.SkippedTasks = children, skipped
}

// trim is TrimRun for an informer, which also passes objects whose deletion it has missed.
func trim(obj any) (any, error) {
	if run, ok := obj.(*pipelinev1.PipelineRun); ok {
		return TrimRun(run), nil
	}
	return obj, nil
}
