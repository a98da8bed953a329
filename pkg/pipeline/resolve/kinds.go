// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// The kinds that are read, and their versions. Other kinds of Tekton and documents of other groups
// are ignored.
const (
	kindPipelineRun = "PipelineRun"
	kindPipeline    = "Pipeline"
	kindTask        = "Task"
	apiV1           = "tekton.dev/v1"
	apiV1beta1      = "tekton.dev/v1beta1"
	apiV1alpha1     = "tekton.dev/v1alpha1"

	// tektonGroup is the group of Tekton's own kinds.
	tektonGroup = "tekton.dev"

	// reasonUnknownKind is the reason of a document that was meant for Tekton and is not read.
	reasonUnknownKind = "UnknownKind"
)

// apiVersions returns the versions of a kind in Tekton's group. It knows kinds that are not read,
// too: authors may keep them in .tekton for other uses. Some of these kinds are of earlier releases
// of Tekton, and Tekton Triggers had this group once.
func apiVersions(kind string) []string {
	switch kind {
	case kindPipelineRun, kindPipeline, kindTask, "TaskRun":
		return []string{apiV1, apiV1beta1}
	case "StepAction":
		return []string{apiV1beta1, apiV1alpha1}
	case "CustomRun":
		return []string{apiV1beta1}
	case "VerificationPolicy", "Run", "PipelineResource", "Condition",
		"TriggerTemplate", "TriggerBinding", "ClusterTriggerBinding", "EventListener":
		return []string{apiV1alpha1}
	case "ClusterTask":
		return []string{apiV1beta1, apiV1alpha1}
	}
	return nil
}

// unread returns the mistake of a document that its author meant for Tekton, but whose apiVersion
// or kind is missing or unknown. It returns nil for documents that are read, and for documents of
// other projects.
func (d *document) unread() error {
	apiVersion, kind := d.word("apiVersion"), d.word("kind")
	of, isList := strings.CutSuffix(kind, "List")
	switch {
	case isList && d.lists(apiVersion, of):
		return d.unreadAt("kind",
			"a %s is not read: write its items as documents, with a line that is --- between them", shorten(kind))
	case slices.Contains(apiVersions(of), apiVersion):
		return nil
	}
	meant := d.meant(kind)
	group, _, _ := strings.Cut(apiVersion, "/")
	switch {
	case apiVersion == "":
		return d.unversioned(kind, meant)
	case group == tektonGroup:
		return d.unreadOfTekton(apiVersion, kind, meant)
	case meant != "" && (group == apiVersion || nearTekton(group)):
		return d.unreadAt("apiVersion", "apiVersion: %s has no %s: write apiVersion: %s%s",
			shorten(apiVersion), meant, apiV1, andKind(kind, meant))
	}
	return nil
}

// unversioned returns the mistake of a document without apiVersion, or nil if it was not meant for
// Tekton. The values of a template or the file of another tool may have a kind or a spec as well:
// what has neither metadata nor the spec of a PipelineRun is no object.
func (d *document) unversioned(kind, meant string) error {
	spec, hasSpec := d.tree["spec"].(map[string]any)
	isObject := d.metadata() != nil || spec["pipelineSpec"] != nil || spec["pipelineRef"] != nil || kind != "" && hasSpec
	switch {
	case meant == "" || !isObject:
		return nil
	case kind == "":
		return d.unreadAt("", "apiVersion and kind are missing: write apiVersion: %s and kind: %s", apiV1, meant)
	}
	return d.unreadAt("apiVersion", "apiVersion is missing: write apiVersion: %s%s", apiV1, andKind(kind, meant))
}

// unreadOfTekton returns the mistake of a document in Tekton's group whose kind does not have this
// apiVersion.
func (d *document) unreadOfTekton(apiVersion, kind, meant string) error {
	versions := apiVersions(kind)
	switch {
	case len(versions) > 0:
		return d.unreadAt("apiVersion", "apiVersion: Tekton has no %s of %s: write apiVersion: %s",
			kind, shorten(apiVersion), versions[0])
	case kind == "" && meant == "":
		return d.unreadAt("kind", "kind is missing: write kind: %s, %s or %s", kindPipelineRun, kindPipeline, kindTask)
	case kind == "":
		return d.unreadAt("kind", "kind is missing: write kind: %s", meant)
	case meant == "":
		return d.unreadAt("kind", "kind: Tekton has no kind %s. %s, %s and %s are read",
			shorten(kind), kindPipelineRun, kindPipeline, kindTask)
	case !slices.Contains(apiVersions(meant), apiVersion):
		return d.unreadAt("kind", "kind: Tekton has no kind %s: write apiVersion: %s and kind: %s",
			shorten(kind), apiV1, meant)
	}
	return d.unreadAt("kind", "kind: Tekton has no kind %s: write kind: %s", shorten(kind), meant)
}

// andKind returns the second half of an advice, for a document whose kind is misspelt as well.
func andKind(kind, meant string) string {
	if kind == meant {
		return ""
	}
	return " and kind: " + meant
}

func (d *document) unreadAt(field, format string, args ...any) error {
	place := d.place()
	if _, found := d.tree[field]; found {
		place = d.placeOf(yamlerror.Path{field})
	}
	return fault.Invalidf(reasonUnknownKind, "%s: "+format, append([]any{place}, args...)...)
}

// word returns the text of a field, or "" if the document does not have it.
func (d *document) word(field string) string {
	value := d.tree[field]
	if text, is := asText(value); is || value == nil {
		return text
	}
	return fmt.Sprint(value)
}

// meant returns the kind that the author meant, or "" if it was not one that is read. A kind counts
// if it is spelt almost like one of them. Without a kind, the fields and the annotations decide.
func (d *document) meant(kind string) string {
	for _, known := range []string{kindPipelineRun, kindPipeline, kindTask} {
		if kind != "" && near(kind, known, len(known)/4) {
			return known
		}
	}
	if kind != "" {
		return ""
	}
	spec, _ := d.tree["spec"].(map[string]any)
	for _, holds := range [][2]string{
		{"pipelineSpec", kindPipelineRun}, {"pipelineRef", kindPipelineRun}, {"tasks", kindPipeline}, {"steps", kindTask},
	} {
		if _, found := spec[holds[0]]; found {
			return holds[1]
		}
	}
	annotations, _ := d.metadata()["annotations"].(map[string]any)
	for name := range annotations {
		if strings.HasPrefix(name, pipelinesascode.GroupName+"/on-") {
			return kindPipelineRun
		}
	}
	return ""
}

// lists reports whether a document is a list of objects, as kubectl writes it, with objects in it
// that are read as documents. An item without apiVersion or kind has those of the list.
func (d *document) lists(apiVersion, of string) bool {
	items, _ := d.tree["items"].([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		object, _ := item.(map[string]any)
		own, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		group, _, _ := strings.Cut(cmp.Or(own, apiVersion), "/")
		return group == tektonGroup && slices.Contains([]string{kindPipelineRun, kindPipeline, kindTask}, cmp.Or(kind, of))
	})
}

// nearTekton reports whether a group is probably a misspelt "tekton.dev". It is asked for documents
// whose kind looks like one that is read. The groups of Tekton's other projects, such as
// triggers.tekton.dev, have no such kinds.
func nearTekton(group string) bool {
	return near(group, tektonGroup, 2) || strings.HasPrefix(strings.ToLower(group), "tekton.") ||
		strings.HasSuffix(group, "."+tektonGroup)
}

// near reports whether a word becomes another one when at most so many letters are added, removed
// or replaced. Upper and lower case are the same.
func near(word, other string, most int) bool {
	word, other = strings.ToLower(word), strings.ToLower(other)
	if len(word) > len(other)+most {
		return false
	}
	above := make([]int, len(other)+1) // the letters to change between no word and each beginning of the other
	for j := range above {
		above[j] = j
	}
	for i := range len(word) {
		row := make([]int, len(other)+1)
		row[0] = i + 1
		for j := range len(other) {
			row[j+1] = min(row[j], above[j+1]) + 1
			if word[i] == other[j] {
				row[j+1] = min(row[j+1], above[j])
			} else {
				row[j+1] = min(row[j+1], above[j]+1)
			}
		}
		above = row
	}
	return above[len(other)] <= most
}

// shorten cuts a text that should have been a single word.
func shorten(s string) string {
	const most = 64
	return text.Shorten(s, most, text.Runes)
}
