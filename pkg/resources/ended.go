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

// EndedRuns returns the label selector of the ended and reported PipelineRuns of one pipeline of a Repository. The labels are those of
// PaC; the end of a long name alone fits them, so RunOf has the last word.
func EndedRuns(installation, repository, pipeline string) string {
	return labels.SelectorFromSet(labels.Set{
		plumbline.InstallationLabel:    labelValue(installation),
		pipelinesascode.Repository:     labelValue(repository),
		pipelinesascode.OriginalPRName: labelValue(pipeline),
		pipelinesascode.State:          pipelinesascode.StateCompleted,
	}).String()
}

// RunOf tells whether a PipelineRun says that it is of a pipeline of a Repository. That is its word alone.
func RunOf(run *metav1.ObjectMeta, repository, pipeline string) bool {
	return run.Annotations[pipelinesascode.Repository] == repository && undashed(run.Annotations[pipelinesascode.OriginalPRName]) == undashed(pipeline)
}

// undashed is a name as RunName takes it.
func undashed(name string) string { return strings.TrimSuffix(name, "-") }

// Named tells whether a PipelineRun has the name that an event gives the run that its annotations tell of. Nobody can label or annotate
// another one so that it has: the name ends with a digest of the event, the file and the definition. It takes somebody who may create
// PipelineRuns, and means to.
func Named(run *metav1.ObjectMeta, installation string) bool {
	event := run.Labels[plumbline.EventLabel]
	place, ours := strings.CutPrefix(run.Annotations[plumbline.RunKeyAnnotation], installation+"/"+event+"/")
	at := strings.LastIndexByte(place, '#')
	if event == "" || !ours || at < 0 {
		return false
	}
	document, err := strconv.Atoi(place[at+1:])
	name := cmp.Or(run.Annotations[plumbline.DefinitionAnnotation], run.Annotations[pipelinesascode.OriginalPRName])
	return err == nil && run.Name == RunName(event, place[:at], document, undashed(name))
}
