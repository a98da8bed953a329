// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"maps"
	"strconv"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
)

// RunInput is everything a PipelineRun is made of.
type RunInput struct {
	Event *v1alpha1.GitEvent
	// Head is the revision that is run and reported on.
	Head git.Head
	// Rendered is what resolve.Render returned. It is not changed.
	Rendered *pipelinev1.PipelineRun
	// TargetBranch and SourceBranch are what match.Branches returned.
	TargetBranch, SourceBranch string
	// Definition is where it was written.
	Definition resolve.Definition
	// Name is RunName's, Namespace the Repository's.
	Name, Namespace string
	// Secret is the name of the git-auth secret, empty when none is made.
	Secret string
	// LogURL is where the run can be watched, empty when no console is configured.
	LogURL string
	// Version is Plumbline's.
	Version string
}

// MakePipelineRun returns the PipelineRun exactly as it is created. It has everything that is known
// before creation (D7): no later write is needed to find and identify the run. It keeps the
// author's labels and annotations, except for those that Plumbline writes. It keeps no other
// metadata of the author: a definition cannot choose the namespace, owners or finalizers.
func MakePipelineRun(in RunInput) *pipelinev1.PipelineRun {
	run := &pipelinev1.PipelineRun{
		TypeMeta: metav1.TypeMeta{
			APIVersion: pipelinev1.SchemeGroupVersion.String(),
			Kind:       "PipelineRun",
		},
		ObjectMeta: metav1.ObjectMeta{
			Name:        in.Name,
			Namespace:   in.Namespace,
			Labels:      authors(in.Rendered.Labels),
			Annotations: authors(in.Rendered.Annotations),
		},
		Spec: *in.Rendered.Spec.DeepCopy(),
	}
	unsign(&run.Spec)
	maps.Copy(run.Labels, runLabels(in))
	maps.Copy(run.Annotations, runAnnotations(in))
	return run
}

// ForAttempt turns the PipelineRun that was planned for a run into that of its later attempt.
// logURL is where people watch it.
func ForAttempt(planned *pipelinev1.PipelineRun, run *v1alpha1.Run, logURL string) {
	planned.Name = run.Name
	planned.Labels[plumbline.AttemptLabel] = strconv.Itoa(run.Attempt())
	if logURL != "" {
		planned.Annotations[pipelinesascode.LogURL] = logURL
	}
}

// authors returns a copy without the keys that are ours: an author's check-run-id would be taken
// for a real one.
func authors(written map[string]string) map[string]string {
	kept := make(map[string]string, len(written))
	for key, value := range written {
		if !ours(key) {
			kept[key] = value
		}
	}
	return kept
}

// ours reports whether a label or annotation is only ever written by Plumbline, at creation or
// later.
func ours(key string) bool {
	switch key {
	case pipelinesascode.URLOrg,
		pipelinesascode.URLRepository,
		pipelinesascode.SHA,
		pipelinesascode.SHATitle,
		pipelinesascode.SHAURL,
		pipelinesascode.RepoURL,
		pipelinesascode.SourceRepoURL,
		pipelinesascode.Sender,
		pipelinesascode.EventType,
		pipelinesascode.Branch,
		pipelinesascode.SourceBranch,
		pipelinesascode.Repository,
		pipelinesascode.GitProvider,
		pipelinesascode.SecretCreated,
		pipelinesascode.ControllerInfo,
		pipelinesascode.PullRequest,
		pipelinesascode.InstallationID,
		pipelinesascode.GHEURL,
		pipelinesascode.CloneURL,
		pipelinesascode.OriginalPRName,
		pipelinesascode.GitAuthSecret,
		pipelinesascode.State,
		pipelinesascode.LogURL,
		pipelinesascode.CheckRunID,
		pipelinesascode.GitLabPipelineID,
		pipelinesascode.SourceProjectID,
		pipelinesascode.TargetProjectID,
		pipelinesascode.ExecutionOrder,
		pipelinesascode.StartReported:
		return true
	}
	return key != plumbline.InfrastructureRetriesAnnotation && strings.HasPrefix(key, plumbline.GroupName+"/") ||
		strings.HasPrefix(key, chains)
}

// chains is the prefix of the keys by which Tekton Chains marks a signed run, and is configured
// (https://tekton.dev/docs/chains/). An author who could write them could make an unsigned run pass
// for signed.
const chains = "chains.tekton.dev/"

// unsign removes Chains' keys from the metadata that Tekton copies to the TaskRuns of a run.
func unsign(spec *pipelinev1.PipelineRunSpec) {
	for i := range spec.TaskRunSpecs {
		unsignAll(spec.TaskRunSpecs[i].Metadata)
	}
	unsignTasks(spec.PipelineSpec)
}

func unsignTasks(pipeline *pipelinev1.PipelineSpec) {
	if pipeline == nil {
		return
	}
	for _, tasks := range [][]pipelinev1.PipelineTask{pipeline.Tasks, pipeline.Finally} {
		for i := range tasks {
			if tasks[i].TaskSpec != nil {
				unsignAll(&tasks[i].TaskSpec.Metadata)
			}
			unsignTasks(tasks[i].PipelineSpec)
		}
	}
}

func unsignAll(metadata *pipelinev1.PipelineTaskMetadata) {
	if metadata == nil {
		return
	}
	for _, keys := range []map[string]string{metadata.Labels, metadata.Annotations} {
		maps.DeleteFunc(keys, func(key, _ string) bool { return strings.HasPrefix(key, chains) })
	}
}

// runLabels are the labels that PaC's users and tools read, and those that link the run to its
// event.
func runLabels(in RunInput) map[string]string {
	spec := &in.Event.Spec
	labels := map[string]string{
		pipelinesascode.ManagedByLabel: pipelinesascode.ManagedBy,
		pipelinesascode.VersionLabel:   labelValue(in.Version),
		pipelinesascode.URLOrg:         labelValue(spec.Project.Owner),
		pipelinesascode.URLRepository:  labelValue(spec.Project.Name),
		pipelinesascode.SHA:            labelValue(in.Head.SHA),
		pipelinesascode.Repository:     labelValue(spec.Repository.Name),
		pipelinesascode.State:          pipelinesascode.StateStarted,
		pipelinesascode.EventType:      labelValue(spec.EventType),
		pipelinesascode.OriginalPRName: labelValue(originalName(in)),
		plumbline.EventLabel:           labelValue(in.Event.Name),
		plumbline.InstallationLabel:    labelValue(in.Event.Namespace),
		plumbline.AttemptLabel:         "1",
	}
	maps.Copy(labels, formerLabels(in))
	if spec.PullRequest != nil {
		labels[pipelinesascode.PullRequest] = strconv.FormatInt(spec.PullRequest.Number, 10)
	}
	if value, found := in.Rendered.Annotations[pipelinesascode.CancelInProgress]; found {
		labels[pipelinesascode.CancelInProgress] = labelValue(value)
	}
	return labels
}

// formerLabels are labels that PaC wrote until 2023. The OpenShift console and tests of Konflux
// still read them; PaC has only the annotations of these names.
func formerLabels(in RunInput) map[string]string {
	spec := &in.Event.Spec
	labels := map[string]string{
		pipelinesascode.GitProvider: labelValue(spec.Provider),
		pipelinesascode.Branch:      labelValue(in.TargetBranch),
		pipelinesascode.Sender:      labelValue(spec.Sender),
	}
	maps.Copy(labels, projectIDs(spec))
	return labels
}

// originalName is the author's name of the run, which checks are named after.
func originalName(in RunInput) string {
	return cmp.Or(resolve.OriginalName(in.Rendered), in.Definition.Name)
}
