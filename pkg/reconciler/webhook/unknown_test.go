// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Where GitLab tells no times, what failed before the first look is not sent again after a pause either: it may be so old that it would run
// a second time.
func TestAPauseDoesNotMakeWhatIsOldNew(t *testing.T) {
	w := newWorld(t)
	w.missed("old")
	w.log[0].At = time.Time{}
	w.run(20 * time.Minute)
	w.hooks[1].State, w.hooks[1].Until = provider.HookPaused, w.clock.Now().Add(10*time.Minute)
	w.run(10 * time.Minute)
	w.hooks[1].State, w.hooks[1].Until = provider.HookCalled, time.Time{}
	w.missed("new")
	w.log[1].At = time.Time{}
	w.run(20 * time.Minute)
	w.wantOnce("new")
	if len(w.resent) != 1 {
		t.Errorf("sent again: %v", w.resent)
	}
}
