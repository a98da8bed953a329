// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// clockSkew is how much the clocks of this process and of the API server may differ.
const clockSkew = 5 * time.Minute

// Tenure is since when this process leads.
type Leadership struct {
	mu    sync.Mutex
	since time.Time
}

// Take notes that a lease was taken over from another process.
func (t *Leadership) Start(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = now
}

// Inherited reports whether another process may have worked on the event: it was there before this
// one led. Such a process may have been paused right before it made a secret, and makes it when the
// event is settled and its secrets are deleted. It leaves no other trace, so the time decides. An
// event too many costs the sweep some deletes.
func (t *Leadership) Inherited(event *v1alpha1.GitEvent) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return event.CreationTimestamp.Time.Before(t.since.Add(clockSkew))
}
