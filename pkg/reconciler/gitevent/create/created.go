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
func (m *Created) Note(name string, uid types.UID, run string, runUID types.UID) {
	m.runs.Put(runKey{name, run}, createdRun{uid, runUID})
}

// UID returns the UID of an event's PipelineRun, "" if it is not remembered.
func (m *Created) UID(name string, uid types.UID, run string) types.UID {
	if known, _ := m.runs.Get(runKey{name, run}); known.event == uid {
		return known.run
	}
	return ""
}

// Recorded is called when the stored status of the event has a PipelineRun.
func (m *Created) Recorded(name, run string) { m.runs.Delete(runKey{name, run}) }

// Forget is called when the event is settled or gone.
func (m *Created) Forget(name string) {
	m.runs.DeleteFunc(func(key runKey) bool { return key.event == name })
}

// Stored forgets the PipelineRuns that the stored status of an event has.
func (m *Created) Stored(event *v1alpha1.GitEvent) {
	for i := range event.Status.Runs {
		if run := &event.Status.Runs[i]; run.UID != "" {
			m.Recorded(event.Name, run.Name)
		}
	}
	if event.Settled() {
		m.Forget(event.Name)
	}
}
