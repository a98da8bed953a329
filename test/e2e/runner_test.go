// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonclient "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	tektoninformers "github.com/tektoncd/pipeline/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// runnerName is the spec.managedBy of PipelineRuns that only have to end. Tekton's controller
// ignores them, and they have neither TaskRuns nor pods. In make test-all Tekton executes these
// runs too.
const runnerName = "test.plumbline.dev/runner"

const managedLine = "  managedBy: " + runnerName + "\n"

// onTekton returns a file of pipeline that Tekton executes.
func onTekton(file string) string { return strings.Replace(file, managedLine, "", 1) }

// startRunner ends the PipelineRuns of runnerName as their annotations ask for, until ctx ends.
func startRunner(ctx context.Context, config *rest.Config) error {
	config.QPS, config.Burst = 500, 1000
	client, err := tektonclient.NewForConfig(config)
	if err != nil {
		return err
	}
	queue := cluster.NewQueue()
	factory := tektoninformers.NewSharedInformerFactory(client, 0)
	informer := factory.Tekton().V1().PipelineRuns().Informer()
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }}
	if _, err = informer.AddEventHandler(handler); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	context.AfterFunc(ctx, queue.ShutDown)
	play := func(_ string, run *pipelinev1.PipelineRun) error { return playRun(ctx, client, run.DeepCopy()) }
	for range 4 {
		go cluster.Work(queue, informer.GetStore(), play)
	}
	return nil
}

// playRun writes the next status of a run, if it has one.
func playRun(ctx context.Context, client tektonclient.Interface, run *pipelinev1.PipelineRun) error {
	if by := run.Spec.ManagedBy; by == nil || *by != runnerName || run.IsDone() || run.IsPending() || !advance(run) {
		return nil
	}
	_, err := client.TektonV1().PipelineRuns(run.Namespace).UpdateStatus(ctx, run, metav1.UpdateOptions{})
	return err
}

// advance takes a run one step further, with Tekton's conditions, and reports whether there was a
// step.
func advance(run *pipelinev1.PipelineRun) bool {
	const words = "Tasks Completed: %d (Failed: %d, Cancelled 0), %sSkipped: 0"
	switch code := run.Annotations[cluster.ExitCodeAnnotation]; {
	case !run.HasStarted():
		run.Status.InitializeConditions(clock.RealClock{})
		run.Status.MarkRunning(pipelinev1.PipelineRunReasonRunning.String(), words, 0, 0, "Incomplete: 1, ")
	case run.Spec.Status != "":
		run.Status.MarkFailed(pipelinev1.PipelineRunReasonCancelled.String(), "PipelineRun %q was cancelled", run.Name)
	case run.Annotations[cluster.HoldAnnotation] == "true":
		return false
	case code != "" && code != "0":
		run.Status.MarkFailed(pipelinev1.PipelineRunReasonFailed.String(), words, 1, 1, "")
	default:
		run.Status.MarkSucceeded(pipelinev1.PipelineRunReasonSuccessful.String(), words, 1, 0, "")
	}
	return true
}
