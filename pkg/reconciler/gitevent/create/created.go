// SPDX-License-Identifier: Apache-2.0

package create

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// Created has the PipelineRuns that this process has seen and that no stored status knows yet. If
// one of them is deleted it must not be created again because of the status alone. The zero value
// is empty. It is only a hint: a PipelineRun that it does not have is created.
type Created struct {
	runs recent.Map[runKey, createdRun]
}

// runKey names a PipelineRun of a GitEvent.
type runKey struct{ event, run string }

// createdRun has the UIDs of both. An event that was deleted and recorded again is another.
type createdRun struct{ event, run types.UID }

// Note remembers a PipelineRun of an event. If there is no room it forgets another event.
func (c *Created) Note(name string, uid types.UID, run string, runUID types.UID) {
	c.runs.Put(runKey{name, run}, createdRun{uid, runUID})
}

// UID returns the UID of an event's PipelineRun, "" if it is not remembered.
func (c *Created) UID(name string, uid types.UID, run string) types.UID {
	if known, _ := c.runs.Get(runKey{name, run}); known.event == uid {
		return known.run
	}
	return ""
}

// Recorded is called when the stored status of the event has a PipelineRun.
func (c *Created) Recorded(name, run string) { c.runs.Delete(runKey{name, run}) }

// Forget is called when the event is settled or gone.
func (c *Created) Forget(name string) {
	c.runs.DeleteFunc(func(key runKey) bool { return key.event == name })
}

// Stored forgets the PipelineRuns that the stored status of an event has.
func (c *Created) Stored(event *v1alpha1.GitEvent) {
	for i := range event.Status.Runs {
		if run := &event.Status.Runs[i]; run.UID != "" {
			c.Recorded(event.Name, run.Name)
		}
	}
	if event.Settled() {
		c.Forget(event.Name)
	}
}
