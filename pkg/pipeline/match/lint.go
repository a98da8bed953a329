// SPDX-License-Identifier: Apache-2.0

package match

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// Finding is an annotation that has no effect as its author wrote it.
type Finding struct {
	// Annotation is the key.
	Annotation string
	// Says is a sentence that begins with a name, without a full stop.
	Says string
}

// events are the values of on-event.
func events() []string {
	return []string{
		string(v1alpha1.TriggerPush),
		string(v1alpha1.TriggerPullRequest),
		string(v1alpha1.TriggerMergeGroup),
		v1alpha1.EventIncoming,
	}
}

// written are the annotations that authors write.
func written() []string {
	return []string{
		pipelinesascode.OnEvent, pipelinesascode.OnTargetBranch, pipelinesascode.OnPathChange,
		pipelinesascode.OnPathChangeIgnore, pipelinesascode.OnLabel, pipelinesascode.OnComment,
		pipelinesascode.OnCELExpression, pipelinesascode.TargetNamespace, pipelinesascode.MaxKeepRuns,
		pipelinesascode.CancelInProgress, pipelinesascode.GroupName + "/task", pipelinesascode.GroupName + "/pipeline",
		plumbline.InfrastructureRetriesAnnotation,
	}
}

// ours matches the keys of the two groups whose annotations mean something.
var ours = regexp.MustCompile(`^(?:` + regexp.QuoteMeta(pipelinesascode.GroupName) + `|` +
	regexp.QuoteMeta(plumbline.GroupName) + `)/`)

// numbered matches the annotations task-1, task-2 and so on.
var numbered = regexp.MustCompile(`^` + regexp.QuoteMeta(pipelinesascode.GroupName) + `/task-[0-9]+$`)

// unknown reports whether an annotation of ours does not exist. Those that Plumbline itself writes
// exist.
func unknown(key string) bool {
	return ours.MatchString(key) && !numbered.MatchString(key) &&
		!slices.Contains(written(), key) && !slices.Contains(pipelinesascode.Written(), key)
}

// short returns the key of an annotation without the prefix of Pipelines-as-Code.
func short(key string) string { return strings.TrimPrefix(key, pipelinesascode.GroupName+"/") }

// misspelt returns what to add to the reason for an annotation that is missing: another one that
// probably means it.
func misspelt(annotations map[string]string, missing string) string {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if unknown(key) && text.Nearest(key, written()) == missing {
			return "; " + notFound(key)
		}
	}
	return ""
}

// notFound says that an annotation does not exist.
func notFound(key string) string {
	known := written()
	for i := range known {
		known[i] = short(known[i])
	}
	return shorten(short(key)) + " does not exist" + text.DidYouMean(short(key), known)
}

// noEvent says which entry of on-event is no event, or "".
func noEvent(entries []string) string {
	for _, entry := range entries {
		if !slices.Contains(events(), entry) {
			return "no event is called " + shorten(entry) +
				cmp.Or(text.DidYouMean(entry, events()), " (events: "+strings.Join(events(), ", ")+")")
		}
	}
	return ""
}

// Lint returns the annotations that have no effect, sorted by their keys. It does not judge values
// with placeholders or values that Select refuses anyway.
func Lint(annotations map[string]string) []Finding {
	var all []Finding
	add := func(key, says string) {
		if says != "" {
			all = append(all, Finding{Annotation: key, Says: says})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		switch key {
		case pipelinesascode.OnEvent:
			add(key, noEvent(entries(annotations, key)))
		case pipelinesascode.OnTargetBranch:
			add(key, badPattern(annotations, key))
			add(key, neverTargeted(annotations))
		case pipelinesascode.OnPathChange, pipelinesascode.OnPathChangeIgnore:
			add(key, badPattern(annotations, key))
		case pipelinesascode.OnLabel:
			add(key, neverLabelled(annotations))
		default:
			if unknown(key) {
				add(key, notFound(key))
			}
		}
	}
	return all
}

// entries returns the list of an annotation, nil if it is missing, is refused, or has placeholders.
func entries(annotations map[string]string, key string) []string {
	if strings.Contains(annotations[key], "{{") {
		return nil
	}
	items, found, err := lookup(annotations, key)
	if !found || err != nil {
		return nil
	}
	return items
}

func badPattern(annotations map[string]string, key string) string {
	for _, entry := range entries(annotations, key) {
		if _, err := compile(entry); err != nil {
			return short(key) + ": " + fault.Of(err).Message
		}
	}
	return ""
}

// neverTargeted says why on-target-branch never matches, or "".
func neverTargeted(annotations map[string]string) string {
	_, expression := annotations[pipelinesascode.OnCELExpression]
	_, event := annotations[pipelinesascode.OnEvent]
	switch {
	case expression:
		return ""
	case !event:
		return "on-target-branch has no effect without on-event"
	}
	starts, targets := entries(annotations, pipelinesascode.OnEvent), entries(annotations, pipelinesascode.OnTargetBranch)
	onlyTags := len(targets) > 0 && !slices.ContainsFunc(targets, func(target string) bool {
		return !strings.HasPrefix(target, tagPrefix)
	})
	if onlyTags && len(starts) == 1 && starts[0] == string(v1alpha1.TriggerPullRequest) {
		return "on-target-branch lists tags only, and no pull request goes to a tag: a tag is a push"
	}
	return ""
}

// neverLabelled says why on-label never matches, or "".
func neverLabelled(annotations map[string]string) string {
	starts := entries(annotations, pipelinesascode.OnEvent)
	_, expression := annotations[pipelinesascode.OnCELExpression]
	if len(starts) == 0 || noEvent(starts) != "" || expression ||
		slices.Contains(starts, string(v1alpha1.TriggerPullRequest)) {
		return ""
	}
	return fmt.Sprintf("on-label never matches: only pull requests have labels, and on-event is %s", show(starts))
}
