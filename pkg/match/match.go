// SPDX-License-Identifier: Apache-2.0

// Package match selects the pipelines an event starts, by the annotations their authors wrote, and says of every other
// one which clause said no. It is pure: no client, no clock, no logger.
package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Selected is the reason given for a pipeline that is selected.
const Selected = "selected"

// Event is the part of an event that pipelines are matched against.
type Event struct {
	// Trigger is what on-event lists.
	Trigger v1alpha1.Trigger
	// EventType is the service's own name of the event ("Merge Request").
	EventType string
	// BaseRef is the ref pushed to ("refs/heads/main", "refs/tags/v1"), or a pull request's target branch ("main").
	BaseRef string
	// HeadRef is BaseRef for a push, the source branch of a pull request.
	HeadRef string
}

// Pipeline is the part of a definition that says when it runs.
type Pipeline struct {
	// Name is the author's name of it.
	Name string
	// Annotations are those of the PipelineRun, with the template variables replaced.
	Annotations map[string]string
}

// Select tells whether the event starts the pipeline, and why, in one clause that shows the values it saw. The error is
// always a fault.Invalid: an annotation that is not written as spec/compatibility.md 3.3 and 3.4 ask.
func Select(ev Event, p Pipeline) (selected bool, reason string, err error) {
	if name, found := unserved(p.Annotations); found {
		return false, fmt.Sprintf("annotation %s is not served by this version of Plumbline yet", name), nil
	}
	for _, clause := range []clause{onEvent, onTargetBranch} {
		reason, err := clause(ev, p.Annotations)
		if err != nil {
			return false, "", fmt.Errorf("pipeline %s: %w", p.Name, err)
		}
		if reason != "" {
			return false, reason, nil
		}
	}
	return true, Selected, nil
}

// clause returns why the event does not match, or "" when it does.
type clause func(Event, map[string]string) (reason string, err error)

func onEvent(ev Event, annotations map[string]string) (string, error) {
	value, found := annotations[pipelinesascode.OnEvent]
	if !found {
		return "no annotation " + pipelinesascode.OnEvent, nil
	}
	events, err := list(pipelinesascode.OnEvent, value)
	if err != nil {
		return "", err
	}
	if slices.Contains(events, string(ev.Trigger)) {
		return "", nil
	}
	return fmt.Sprintf("on-event %s does not include %s", show(events), ev.Trigger), nil
}

func onTargetBranch(ev Event, annotations map[string]string) (string, error) {
	value, found := annotations[pipelinesascode.OnTargetBranch]
	if !found {
		return "no annotation " + pipelinesascode.OnTargetBranch, nil
	}
	patterns, err := list(pipelinesascode.OnTargetBranch, value)
	if err != nil {
		return "", err
	}
	for _, pattern := range patterns {
		matches, err := matchRef(pattern, ev.BaseRef)
		if err != nil {
			return "", fmt.Errorf("annotation %s: %w", pipelinesascode.OnTargetBranch, err)
		}
		if matches {
			return "", nil
		}
	}
	return fmt.Sprintf("on-target-branch %s does not match %s", show(patterns), strings.TrimPrefix(ev.BaseRef, branchPrefix)), nil
}
