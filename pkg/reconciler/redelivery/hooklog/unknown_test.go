// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Where GitLab tells no times, what failed before the first look is not sent again after a pause
// either: it may be so old that it would run a second time.
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

// A token that may not look any more does not send again either what was missed before: that is
// left until it may.
func TestATokenThatMayNotAnyMoreIsAskedSeldom(t *testing.T) {
	w := newWorld(t)
	w.receive = refuses("a")
	w.missed("a")
	w.run(time.Minute)
	w.fails = fault.Operatorf(fault.ReasonPermissionMissing, "403")
	w.calls = 0
	w.run(4 * time.Hour)
	if w.calls > 20 {
		t.Errorf("%d calls in four hours", w.calls)
	}
	w.fails, w.receive = nil, nil
	w.run(time.Hour)
	w.wantOnce("a")
}

// What was missed by the project that had the name before is asked of no other one.
func TestAnotherProjectGetsTheName(t *testing.T) {
	w := newWorld(t)
	w.receive = refuses("a")
	w.missed("a")
	w.run(time.Minute)
	before := len(w.resent)
	for i := range w.hooks {
		w.hooks[i].Project = 6
	}
	w.run(4 * time.Hour)
	if before == 0 || len(w.resent) > before {
		t.Errorf("sent again: %d times, and %d times when another project had the name", before, len(w.resent)-before)
	}
}
