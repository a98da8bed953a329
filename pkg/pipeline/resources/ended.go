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
	event := run.Labels[plumbline.EventLabel]
	place, ours := strings.CutPrefix(run.Annotations[plumbline.RunKeyAnnotation], installation+"/"+event+"/")
	at := strings.LastIndexByte(place, '#')
	if event == "" || !ours || at < 0 {
		return false
	}
	document, err := strconv.Atoi(place[at+1:])
	pipeline := run.Annotations[pipelinesascode.OriginalPRName]
	definition := cmp.Or(run.Annotations[plumbline.DefinitionAnnotation], pipeline)
	return err == nil && run.Name == RunName(event, place[:at], document, undashed(definition)) &&
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
