// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// clockSkew is how much the clocks of this process and of the API server may differ.
const clockSkew = 5 * time.Minute

// Leadership is since when this process leads.
type Leadership struct {
	mu    sync.Mutex
	since time.Time
}

// Start notes that this process took a lease from another one.
func (l *Leadership) Start(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = now
}

// Inherited reports whether another process may have worked on the event: it existed before this
// process led. That process may have been paused right before it created a secret, and create it
// after the event is settled and its secrets are deleted. Only the time shows that. Each event too
// many costs the sweep some deletions.
func (l *Leadership) Inherited(event *v1alpha1.GitEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return event.CreationTimestamp.Time.Before(l.since.Add(clockSkew))
}
