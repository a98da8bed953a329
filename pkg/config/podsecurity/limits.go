// SPDX-License-Identifier: Apache-2.0

// Package podsecurity says what an author's PipelineRun may ask the cluster for at most:
// ServiceAccounts, and what the Pod Security Standards leave out
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/).
package podsecurity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// The levels of the Pod Security Standards that restrict.
const (
	Baseline   = "baseline"
	Restricted = "restricted"
)

// Limits are one ceiling; the zero value is none.
type Limits struct {
	// ServiceAccounts are those that may be named; empty is any. A run that names none has Tekton's
	// default.
	ServiceAccounts []string
	// PodSecurity is the level whose forbidden values are refused; empty is none.
	PodSecurity string
	// Setting says for people where the ceiling is configured.
	Setting string
}

// ReasonAbove is the reason of the Invalid fault of a PipelineRun that asks for more.
const ReasonAbove = "AboveCeiling"

// Check refuses a PipelineRun, with everything inlined, that asks for more than any of the ceilings
// allows. The error is an Invalid fault that names the field; file is where the run is defined.
func Check(run *pipelinev1.PipelineRun, file string, all ...Limits) error {
	all = slices.DeleteFunc(
		slices.Clone(all),
		func(l Limits) bool { return len(l.ServiceAccounts) == 0 && l.PodSecurity == "" },
	)
	if len(all) == 0 {
		return nil
	}
	data, err := json.Marshal(run)
	if err != nil {
		return fault.Invalidf(ReasonAbove, "%s: cannot be judged: %w", file, err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return fault.Invalidf(ReasonAbove, "%s: cannot be judged: %w", file, err)
	}
	for _, limits := range all {
		w := walk{limits: limits, rules: rulesOf(limits)}
		w.mapping("metadata", tree["metadata"])
		w.mapping("spec", tree["spec"])
		if w.found != "" {
			return fault.Invalidf(ReasonAbove, "%s: %s, which %s does not allow", file, w.found, limits.Setting)
		}
	}
	return nil
}

// walk looks for the first value that is refused, in the order of keys. It knows names of fields,
// not types: whatever Tekton makes pods of, a field has the name that it has in a pod.
type walk struct {
	limits Limits
	rules  []rule
	found  string
}

// rule returns the value that it refuses of a field, as a text for people, "" if it refuses none.
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
			continue // texts of the author's, which have the author's names
		}
		w.field(path, parent, key, mapping[key])
	}
}

func (w *walk) field(path, parent, key string, value any) {
	at := path + "." + key
	for _, refuses := range w.rules {
		if what := refuses(parent, key, value); what != "" {
			w.found = fmt.Sprintf("%s is %s", at, what)
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

// nameOf is what an item of a list is called.
func nameOf(item any, index int) string {
	mapping, _ := item.(map[string]any)
	for _, key := range []string{"name", "pipelineTaskName"} {
		if name, _ := mapping[key].(string); name != "" {
			return name
		}
	}
	return fmt.Sprint(index)
}

func rulesOf(l Limits) []rule {
	var all []rule
	if len(l.ServiceAccounts) > 0 {
		all = append(all, func(_, key string, value any) string {
			name, _ := value.(string)
			if key != "serviceAccountName" || name == "" || slices.Contains(l.ServiceAccounts, name) {
				return ""
			}
			return fmt.Sprintf("%q", name)
		})
	}
	if l.PodSecurity != "" {
		all = append(all, unseen, forbidden, hosts, profiles, seLinux, sysctls, capabilities(l.PodSecurity), appArmor)
	}
	if l.PodSecurity == Restricted {
		all = append(all, restricted, volumes)
	}
	return all
}
