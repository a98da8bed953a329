// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/runtime/panics"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

const (
	// context lines precede those that are shown: a secret of several lines may end in the latter.
	contextLines = 100
	// podPage is how many pods are decoded at once: each may have 1.5 MiB.
	podPage = 25
	// maxPods is how many pods of a run are read, and maxRefs how many Secrets.
	maxPods = 1000
	maxRefs = 200
	// gone is what a kubelet answers, with the code 200, for a container that its runtime removed.
	gone = "unable to retrieve container logs for "
)

// Reader reads the logs of failed steps, and what has to be masked in them.
type Reader struct {
	Tekton tektonv1.TaskRunsGetter
	// Kube has a timeout and connections of its own.
	Kube corev1client.CoreV1Interface

	masking sync.Mutex // one log at a time, because a masker may need 100 MiB
}

// Request says what is to be read of a finished run.
type Request struct {
	Namespace, Name string
	UID             types.UID
	// Secret is the name of the git-auth secret that the run mounts; "" if there is none.
	Secret string
	// Tasks is true if the PipelineRun says that it has had tasks.
	Tasks bool
	// Values are secret values that the run was given as params.
	Values []string
	// Steps is the most steps, and Lines the most lines of one. Bytes returns how many bytes one of
	// n steps may have in JSON.
	Steps, Lines int
	Bytes        func(n int) int
	// Detection says which lines name source lines.
	Detection config.ErrorDetection
}

// failedStep is a step whose log is read.
type failedStep struct {
	task, step, pod, container string
	taskRun                    types.UID
	ended                      time.Time
}

// run is what is known of a run's TaskRuns and pods.
type run struct {
	Request
	exists   bool // it has a TaskRun
	steps    []failedStep
	taskRuns map[types.UID]*taskRun
	pods     map[string]types.UID // the TaskRuns of the pods that exist
	accounts map[string]bool      // the ServiceAccounts of these pods
	refs     refs
	since    map[string]time.Time // when the first pod with a Secret was created
}

// taskRun is what is known of a TaskRun that had a pod.
type taskRun struct {
	pod, account string
	created      time.Time
	refs         refs
	complete     bool
}

// Read reads what it can. again is true if something is missing that may be there later.
func (r *Reader) Read(ctx context.Context, request Request) (log v1alpha1.RunLog, again bool) {
	found := &run{
		Request: request, taskRuns: map[types.UID]*taskRun{}, pods: map[string]types.UID{}, accounts: map[string]bool{},
		refs: refs{}, since: map[string]time.Time{},
	}
	if err := r.readTaskRuns(ctx, found); err != nil {
		return missing(request.Namespace, err)
	}
	if len(found.steps) == 0 {
		if request.Tasks && !found.exists {
			log.Missing = &v1alpha1.MissingLog{Reason: v1alpha1.LogGone}
		}
		return log, false
	}
	if err := r.readPods(ctx, found); err != nil {
		return missing(request.Namespace, err)
	}
	values, err := r.secrets(ctx, found)
	if err != nil {
		return missing(request.Namespace, err)
	}
	log.Steps, err = r.readSteps(ctx, found, append(values, request.Values...))
	if hidden := (*hiddenError)(nil); errors.As(err, &hidden) || apierrors.IsForbidden(err) {
		return missing(request.Namespace, err)
	}
	return log, err != nil
}

// readTaskRuns reads the TaskRuns that the run owns. Users in the namespace may label others as the
// run's.
func (r *Reader) readTaskRuns(ctx context.Context, found *run) error {
	err := pipelineruns.EachTaskRun(ctx, r.Tekton.TaskRuns(found.Namespace), found.Name, func(t *pipelinev1.TaskRun) {
		if owner := metav1.GetControllerOf(t); owner == nil || owner.UID != found.UID {
			return
		}
		found.exists = true
		if t.Status.PodName == "" {
			return
		}
		known := &taskRun{
			pod: t.Status.PodName, account: t.Spec.ServiceAccountName, created: t.CreationTimestamp.Time, refs: refs{},
		}
		known.complete = known.refs.addTaskRun(t)
		found.taskRuns[t.UID] = known
		found.steps = append(found.steps, failedSteps(t)...)
	})
	slices.SortStableFunc(found.steps, func(a, b failedStep) int {
		return cmp.Or(a.ended.Compare(b.ended), cmp.Compare(a.task, b.task))
	})
	found.steps = found.steps[:min(len(found.steps), found.Steps)]
	return err
}

// failedSteps returns the steps that made a TaskRun fail: not those that were skipped, or whose
// errors are ignored, and none of a cancelled TaskRun.
func failedSteps(t *pipelinev1.TaskRun) (steps []failedStep) {
	c := t.Status.GetCondition(apis.ConditionSucceeded)
	if !c.IsFalse() || c.Reason == pipelinev1.TaskRunReasonCancelled.String() ||
		c.Reason == pipelinev1.TaskRunReasonFailureIgnored.String() {
		return nil
	}
	for _, s := range t.Status.Steps {
		if !diagnosis.StepFailed(&s) {
			continue
		}
		step := failedStep{
			task: cmp.Or(t.Labels[pipeline.PipelineTaskLabelKey], t.Name), step: s.Name, pod: t.Status.PodName,
			container: s.Container, taskRun: t.UID,
		}
		if t.Status.CompletionTime != nil {
			step.ended = t.Status.CompletionTime.Time
		}
		steps = append(steps, step)
	}
	return steps
}

// readSteps reads the logs of the failed steps at the same time: one that hangs delays no other.
func (r *Reader) readSteps(ctx context.Context, found *run, values []string) ([]v1alpha1.StepLog, error) {
	logs, errs := make([]v1alpha1.StepLog, len(found.steps)), make([]error, len(found.steps))
	texts := make([][]byte, len(found.steps))
	var all sync.WaitGroup
	var catcher panics.Catcher
	for i, step := range found.steps {
		logs[i] = v1alpha1.StepLog{Task: step.task, Step: step.step}
		all.Go(func() {
			catcher.Run(func() { texts[i], errs[i] = r.readStep(ctx, found, step, &logs[i]) })
		})
	}
	all.Wait()
	catcher.Again()
	r.mask(found, values, texts, logs)
	return logs, errors.Join(errs...)
}

// readStep returns the end of a log, or sets why it has none. It returns an error that another
// attempt may not meet, or that is about all steps.
func (r *Reader) readStep(
	ctx context.Context, found *run, step failedStep, log *v1alpha1.StepLog,
) (text []byte, err error) {
	if found.pods[step.pod] != step.taskRun {
		log.Missing = &v1alpha1.MissingLog{Reason: v1alpha1.LogGone}
		return nil, nil
	}
	if text, err = r.tail(ctx, found, step); err != nil {
		reason, again := reasonOf(err)
		log.Missing = &v1alpha1.MissingLog{Reason: reason}
		if again || reason == v1alpha1.LogForbidden {
			return nil, err
		}
	}
	return text, nil
}

// tail reads the end of a step's log.
func (r *Reader) tail(ctx context.Context, found *run, step failedStep) ([]byte, error) {
	lines := found.Lines
	if found.Detection.Detect {
		lines = max(lines, found.Detection.Lines)
	}
	stream, err := r.Kube.Pods(found.Namespace).GetLogs(step.pod, &corev1.PodLogOptions{
		Container: step.container, TailLines: new(int64(lines + contextLines)),
	}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	return tail(stream, maxRead)
}
