// SPDX-License-Identifier: Apache-2.0

package create

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxRuns bounds the remembered PipelineRuns. Each is forgotten when its status is written, usually
// within seconds. There are this many only while the API server accepts creations and refuses
// status writes.
const maxRuns = 10_000

// Created has the PipelineRuns that this process has seen and that no stored status knows yet. If
// one of them is deleted it must not be created again because of the status alone. The zero value
// is empty. It is only a hint: a PipelineRun that it does not have is created.
type Created struct {
	mu     sync.Mutex
	events map[string]runsOf
	count  int
}

// runsOf is a GitEvent and its PipelineRuns by name. A recreated event has another UID.
type runsOf struct {
	uid  types.UID
	runs map[string]types.UID
}

// Note remembers a PipelineRun of an event. If there is no room it forgets another event.
func (m *Created) Note(name string, uid types.UID, run string, runUID types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events == nil {
		m.events = map[string]runsOf{}
	}
	known, found := m.events[name]
	if !found || known.uid != uid {
		m.forget(name)
		known = runsOf{uid: uid, runs: map[string]types.UID{}}
		m.events[name] = known
	}
	if _, again := known.runs[run]; !again {
		m.makeRoom(name)
		m.count++
	}
	known.runs[run] = runUID
}

// UID returns the UID of an event's PipelineRun, "" if it is not remembered.
func (m *Created) UID(name string, uid types.UID, run string) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.events[name]
	if known.uid != uid {
		return ""
	}
	return known.runs[run]
}

// Recorded is called when the stored status of the event has a PipelineRun.
func (m *Created) Recorded(name, run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.events[name]
	if _, noted := known.runs[run]; !noted {
		return
	}
	m.count--
	if delete(known.runs, run); len(known.runs) == 0 {
		delete(m.events, name)
	}
}

// Forget is called when the event is settled or gone.
func (m *Created) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(name)
}

func (m *Created) forget(name string) {
	m.count -= len(m.events[name].runs)
	delete(m.events, name)
}

func (m *Created) makeRoom(keep string) {
	for name := range m.events {
		if m.count < maxRuns {
			return
		}
		if name != keep {
			m.forget(name)
		}
	}
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
