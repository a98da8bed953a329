// SPDX-License-Identifier: Apache-2.0

package create

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxRuns bounds the PipelineRuns that are remembered. Each is forgotten when its status is
// written, which is a matter of seconds: so many are there only while the API server takes creates
// and refuses status writes.
const maxRuns = 10_000

// Created is which PipelineRuns one process has seen of those that the status of their event does
// not know yet: one of them that is deleted must not be created again because of the status alone.
// The zero value knows nothing. It is advice: what it does not know is created.
type Created struct {
	mu     sync.Mutex
	events map[string]runsOf
	count  int
}

// runsOf is a GitEvent and its PipelineRuns by name. One that was deleted and recorded again is
// another.
type runsOf struct {
	uid  types.UID
	runs map[string]types.UID
}

// Note remembers that an event's PipelineRun was there. When there is no room another event is
// forgotten.
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

// Recorded is called when the status of the event knows a PipelineRun.
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

// Stored forgets what the stored status of an event knows now.
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
