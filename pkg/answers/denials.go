// SPDX-License-Identifier: Apache-2.0

// Package answers remembers for a while what Git services have answered. It is advice: a process that knows nothing asks.
package answers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

const (
	// DenialLife is how long somebody counts as one who may not write after the Git service has said so (S7): what a stranger
	// does again and again is asked for once. Whoever is given the right meanwhile waits no
	// longer than that, and not at all if the delivery is sent again.
	DenialLife = 2 * time.Minute
	// maxDenials bounds what is remembered; forgetting costs calls.
	maxDenials = 10_000
)

// Denials remembers who may not write where. Who may is never remembered: a right that was taken away is gone at once. It is
// advice: a process that knows nothing asks. The zero value is ready.
type Denials struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// holds tells whether the answer was no so shortly before that it is not asked for again.
func (d *Denials) holds(who string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, found := d.seen[who]
	return found && now.Sub(at) < DenialLife
}

// note remembers that the answer was no.
func (d *Denials) note(who string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.seen) >= maxDenials || d.seen == nil {
		d.seen = map[string]time.Time{}
	}
	d.seen[who] = now
}

// Access asks the Git service who may write in the event's project, unless it is known that somebody may not.
type Access struct {
	plan.Access
	Denials *Denials
	Spec    *v1alpha1.GitEventSpec
	// Asked is true when somebody who may administrate the repository had the delivery sent again: it is asked for then.
	Asked bool
	Now   func() time.Time
}

// CanWrite returns the service's answer, a yes always as it is now.
func (a Access) CanWrite(ctx context.Context, user string) (bool, error) {
	who := fmt.Sprintf("%s %s %d %s", a.Spec.Provider, a.Spec.Host, a.Spec.Project.ID, strings.ToLower(user)) // no service tells cases apart
	if !a.Asked && a.Denials.holds(who, a.Now()) {
		return false, nil
	}
	may, err := a.Access.CanWrite(ctx, user)
	if err == nil && !may {
		a.Denials.note(who, a.Now())
	}
	return may, err
}
