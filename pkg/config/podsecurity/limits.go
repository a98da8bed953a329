// SPDX-License-Identifier: Apache-2.0

// Package podsecurity checks whether a PipelineRun stays within what an administrator allows its
// author: some ServiceAccounts, and a level of the Pod Security Standards
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/).
package podsecurity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// The levels of the Pod Security Standards that forbid something.
const (
	Baseline   = "baseline"
	Restricted = "restricted"
)

// Limits are what one setting allows. The zero value allows everything.
type Limits struct {
	// ServiceAccounts are the only ones that may be named; empty allows all. A run that names none
	// has Tekton's default.
	ServiceAccounts []string
	// PodSecurity is a level of the Pod Security Standards; empty forbids nothing.
	PodSecurity string
	// Setting names the setting in messages.
	Setting string
}

// Check returns an Invalid fault for a PipelineRun that exceeds any of the limits. Everything that
// the run refers to has to be inlined. The message names the file that defines the run, the field,
// the limit and the setting.
//
// It calls pace with the CPU time that the check will take. If pace returns an error, Check returns
// that error and checks nothing.
func Check(run *pipelinev1.PipelineRun, file string, pace func(time.Duration) error, all ...Limits) error {
	all = slices.DeleteFunc(slices.Clone(all),
		func(l Limits) bool { return len(l.ServiceAccounts) == 0 && l.PodSecurity == "" })
	if len(all) == 0 {
		return nil
	}
	var tree map[string]any
	if err := convert(run, &tree); err != nil {
		return fault.Invalidf(fault.ReasonOverLimit, "%s: it cannot be checked against %s: %w", file, all[0].Setting, err)
	}
	for _, limits := range all {
		if limits.PodSecurity != "" {
			if err := pace(work(tree)); err != nil {
				return err
			}
		}
		rules, err := rulesOf(limits)
		if err != nil {
			return err
		}
		w := walk{rules: rules}
		w.mapping("", map[string]any{"metadata": tree["metadata"], "spec": tree["spec"]})
		if w.found != "" {
			return fault.Invalidf(fault.ReasonOverLimit, "%s: %s. This limit is set in %s", file, w.found, limits.Setting)
		}
	}
	return nil
}

// convert reads what Tekton has as what Kubernetes has: the fields have the same names.
func convert(value any, into any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing it as JSON: %w", err)
	}
	return json.Unmarshal(data, into)
}

// walk searches for the first field that a rule forbids, in the order of keys. Fields are known by
// their names and not by Tekton's types: a custom task may embed a task as well.
type walk struct {
	rules []rule
	found string
	// parts is how many parts of pods the current field is in.
	parts int
}

// maxParts is how many parts of pods may be in each other: in Tekton's types there are at most
// three, the metadata of a claim of a volume of a pod template. Each is read as a whole, so a
// custom task with many in each other would take seconds of a processor.
const maxParts = 5

// rule returns why a field is forbidden, as the part of a sentence after the field's path, or "".
type rule func(parent, key string, value any) string

func (w *walk) mapping(path string, value any) {
	mapping, is := value.(map[string]any)
	if !is {
		return
	}
	parent := path[strings.LastIndex(path, ".")+1:]
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		if w.found != "" {
			return
		}
		if key == "params" {
			continue // the author's own names and texts
		}
		w.field(path, parent, key, mapping[key])
	}
}

func (w *walk) field(path, parent, key string, value any) {
	at := strings.TrimPrefix(path+"."+key, ".")
	if isPart(key) {
		if w.parts == maxParts {
			w.found = fmt.Sprintf("%s is nested in too many parts of a pod to be checked", at)
			return
		}
		w.parts++
		defer func() { w.parts-- }()
	}
	for _, forbids := range w.rules {
		if why := forbids(parent, key, value); why != "" {
			w.found = at + why
			return
		}
	}
	items, isList := value.([]any)
	if !isList {
		w.mapping(at, value)
		return
	}
	for i, item := range items {
		w.mapping(fmt.Sprintf("%s[%s]", at, nameOf(item, i)), item)
	}
}

// nameOf returns what an item of a list is called in messages.
func nameOf(item any, index int) string {
	mapping, _ := item.(map[string]any)
	for _, key := range []string{"name", "pipelineTaskName"} {
		if name, _ := mapping[key].(string); name != "" {
			return name
		}
	}
	return fmt.Sprint(index)
}

func rulesOf(l Limits) ([]rule, error) {
	var all []rule
	if len(l.ServiceAccounts) > 0 {
		all = append(all, accounts(l.ServiceAccounts))
	}
	if l.PodSecurity != "" {
		s, err := standardOf(l.PodSecurity)
		if err != nil {
			return nil, err
		}
		all = append(all, remote, s.forbids)
	}
	return all, nil
}

// accounts forbids other ServiceAccounts. One with a Tekton variable is another: its value is not
// known yet.
func accounts(allowed []string) rule {
	return func(_, key string, value any) string {
		name, _ := value.(string)
		if key != "serviceAccountName" || name == "" || slices.Contains(allowed, name) {
			return ""
		}
		return fmt.Sprintf(" is %q, and only %s may be named", name, strings.Join(allowed, ", "))
	}
}

// remote forbids what Tekton fetches after this check. An annotation may refer to the same:
// Plumbline fetches it before the check.
func remote(parent, key string, value any) string {
	resolver, _ := value.(string)
	isReference := parent == "taskRef" || parent == "pipelineRef" || parent == "ref"
	if key != "resolver" || !isReference || resolver == "" || resolver == "cluster" {
		return ""
	}
	return fmt.Sprintf(
		" is %q: Tekton would fetch it later, so it cannot be checked. Name it in an annotation instead (task, task-N or pipeline)",
		resolver,
	)
}
