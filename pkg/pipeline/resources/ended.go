// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// PipelineRuns returns the label selector of the PipelineRuns of one pipeline of a Repository, by
// labels that they are created with. The labels are those of PaC; the end of a long name alone fits
// them, so RunOf has the last word.
func PipelineRuns(installation, repository, pipeline string) string {
	return labels.SelectorFromSet(labels.Set{
		plumbline.InstallationLabel:    labelValue(installation),
		pipelinesascode.Repository:     labelValue(repository),
		pipelinesascode.OriginalPRName: labelValue(pipeline),
	}).String()
}

// RunOf reports whether a PipelineRun says that it is of a pipeline of a Repository. That is its
// word alone.
func RunOf(run *metav1.ObjectMeta, repository, pipeline string) bool {
	return run.Annotations[pipelinesascode.Repository] == repository &&
		SamePipeline(run.Annotations[pipelinesascode.OriginalPRName], pipeline)
}

// SamePipeline reports whether two names are of one pipeline.
func SamePipeline(a, b string) bool { return undashed(a) == undashed(b) }

// undashed returns a name as RunName takes it.
func undashed(name string) string { return strings.TrimSuffix(name, "-") }

// Named reports whether the name of a PipelineRun is the one that Plumbline gives to the run in its
// annotations. The name ends with a digest of the event, the file and the definition, so labels and
// annotations cannot make another PipelineRun pass: only a user who creates one with that name on
// purpose can. Where the definition's name has placeholders, any name that it can become passes.
func Named(run *metav1.ObjectMeta, installation string) bool {
	first, named := firstName(run, installation)
	return named && (run.Name == first || run.Name == laterName(run, first))
}

// laterName returns the name of a PipelineRun whose label says that it is a later attempt. For
// other PipelineRuns it returns the first name.
func laterName(run *metav1.ObjectMeta, first string) string {
	attempt, err := strconv.Atoi(run.Labels[plumbline.AttemptLabel])
	if err != nil || attempt < 2 || attempt > 1+v1alpha1.MaxInfrastructureRetries {
		return first
	}
	return AttemptName(first, attempt)
}

// FirstName returns the name of the first attempt of a PipelineRun, which is its own unless its
// labels and annotations say that it is a later attempt.
func FirstName(run *metav1.ObjectMeta, installation string) string {
	if first, named := firstName(run, installation); named && run.Name == laterName(run, first) {
		return first
	}
	return run.Name
}

// firstName returns the name that Plumbline gives to the first attempt of the run in the
// annotations of a PipelineRun, and false if they name none.
func firstName(run *metav1.ObjectMeta, installation string) (name string, named bool) {
	event := run.Labels[plumbline.EventLabel]
	place, ours := strings.CutPrefix(run.Annotations[plumbline.RunKeyAnnotation], installation+"/"+event+"/")
	at := strings.LastIndexByte(place, '#')
	if event == "" || !ours || at < 0 {
		return "", false
	}
	document, err := strconv.Atoi(place[at+1:])
	pipeline := run.Annotations[pipelinesascode.OriginalPRName]
	definition := cmp.Or(run.Annotations[plumbline.DefinitionAnnotation], pipeline)
	return RunName(event, place[:at], document, undashed(definition)), err == nil &&
		becomes(undashed(definition), undashed(pipeline))
}

// becomes reports whether a name may be what a definition's is with its placeholders replaced.
func becomes(definition, name string) bool {
	first, last := strings.Index(definition, "{{"), strings.LastIndex(definition, "}}")
	if first < 0 || last < first {
		return definition == name
	}
	return strings.HasPrefix(name, definition[:first]) && strings.HasSuffix(name, definition[last+len("}}"):])
}
