// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/mistake"
)

// The kinds that are read. Others are ignored if they are known or of another group.
const (
	kindPipelineRun = "PipelineRun"
	kindPipeline    = "Pipeline"
	kindTask        = "Task"
	apiV1           = "tekton.dev/v1"
	apiV1beta1      = "tekton.dev/v1beta1"
	apiV1alpha1     = "tekton.dev/v1alpha1"

	// tektonGroup is the group of Tekton's own kinds.
	tektonGroup = "tekton.dev"
)

// apiVersions are those that a kind of Tekton's group has: the kinds that are read, and those that are not, which may lie
// in .tekton for other uses. Some are of earlier releases of Tekton, and Triggers has a group of its own since.
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

// unread is the mistake of a document that was meant for Tekton and is not read, because its apiVersion or kind is missing or
// none of Tekton's. It is nil for what is read, and for what is somebody else's.
func (d *document) unread() error {
	apiVersion, kind := d.word("apiVersion"), d.word("kind")
	if slices.Contains(apiVersions(kind), apiVersion) {
		return nil
	}
	meant := d.meant(kind)
	group, _, _ := strings.Cut(apiVersion, "/")
	switch {
	case d.listsTekton(kind):
		return d.unreadAt("kind", "a %s is not read: write its items as documents, with a line that is --- between them", shorten(kind))
	case apiVersion == "" && meant == "":
		return nil
	case apiVersion == "" && kind == "":
		return d.unreadAt("", "apiVersion and kind are missing: write apiVersion: %s and kind: %s", apiV1, meant)
	case apiVersion == "":
		return d.unreadAt("apiVersion", "apiVersion is missing: write apiVersion: %s%s", apiV1, andKind(kind, meant))
	case group == tektonGroup:
		return d.unreadOfTekton(apiVersion, kind, meant)
	case meant != "" && (group == apiVersion || nearTekton(group)):
		return d.unreadAt("apiVersion", "apiVersion: %s has no %s: write apiVersion: %s%s", shorten(apiVersion), meant, apiV1, andKind(kind, meant))
	}
	return nil
}

// unreadOfTekton is the mistake of a document of Tekton's group with an apiVersion that its kind does not have.
func (d *document) unreadOfTekton(apiVersion, kind, meant string) error {
	versions := apiVersions(kind)
	switch {
	case len(versions) > 0:
		return d.unreadAt("apiVersion", "apiVersion: Tekton has no %s of %s: write apiVersion: %s", kind, shorten(apiVersion), versions[0])
	case kind == "" && meant == "":
		return d.unreadAt("kind", "kind is missing: write kind: %s, %s or %s", kindPipelineRun, kindPipeline, kindTask)
	case kind == "":
		return d.unreadAt("kind", "kind is missing: write kind: %s", meant)
	case meant == "":
		return d.unreadAt("kind", "kind: Tekton has no kind %s. %s, %s and %s are read", shorten(kind), kindPipelineRun, kindPipeline, kindTask)
	case !slices.Contains(apiVersions(meant), apiVersion):
		return d.unreadAt("kind", "kind: Tekton has no kind %s: write apiVersion: %s and kind: %s", shorten(kind), apiV1, meant)
	}
	return d.unreadAt("kind", "kind: Tekton has no kind %s: write kind: %s", shorten(kind), meant)
}

// andKind is what has to be written besides an apiVersion.
func andKind(kind, meant string) string {
	if kind == meant {
		return ""
	}
	return " and kind: " + meant
}

func (d *document) unreadAt(field, format string, args ...any) error {
	place := d.place()
	if _, found := d.tree[field]; found {
		place = d.placeOf(mistake.Path{field})
	}
	return fault.Invalidf("UnknownKind", "%s: "+format, append([]any{place}, args...)...)
}

// word is the text of a field, "" if it has none.
func (d *document) word(field string) string {
	value := d.tree[field]
	if text, is := asText(value); is || value == nil {
		return text
	}
	return fmt.Sprint(value)
}

// meant returns which of the kinds that are read a document was meant to be, "" if none: by a kind that is nearly one of them,
// and without a kind by what it holds.
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
	for _, holds := range [][2]string{{"pipelineSpec", kindPipelineRun}, {"pipelineRef", kindPipelineRun}, {"tasks", kindPipeline}, {"steps", kindTask}} {
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

// listsTekton reports whether a document is a list of objects, as kubectl writes it, and some are Tekton's.
func (d *document) listsTekton(kind string) bool {
	items, _ := d.tree["items"].([]any)
	return strings.HasSuffix(kind, "List") && slices.ContainsFunc(items, func(item any) bool {
		object, _ := item.(map[string]any)
		apiVersion, _ := object["apiVersion"].(string)
		return strings.HasPrefix(apiVersion, tektonGroup+"/")
	})
}

// nearTekton reports whether a group is a slip of the pen for Tekton's. Groups that end in it are other projects'.
func nearTekton(group string) bool {
	return near(group, tektonGroup, 2) || strings.HasPrefix(strings.ToLower(group), "tekton.")
}

// near reports whether at most some letters have to be added, left out or replaced in a word to get another one, in whatever
// case they are.
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

// shorten cuts what an author wrote where a single word belongs.
func shorten(text string) string {
	const most = 64
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
