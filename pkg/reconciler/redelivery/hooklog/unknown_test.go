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
	e := newEnv(t)
	e.missed("old")
	e.log[0].At = time.Time{}
	e.run(20 * time.Minute)
	e.hooks[1].State, e.hooks[1].Until = provider.HookPaused, e.clock.Now().Add(10*time.Minute)
	e.run(10 * time.Minute)
	e.hooks[1].State, e.hooks[1].Until = provider.HookCalled, time.Time{}
	e.missed("new")
	e.log[1].At = time.Time{}
	e.run(20 * time.Minute)
	e.wantOnce("new")
	if len(e.resent) != 1 {
		t.Errorf("sent again: %v", e.resent)
	}
}

// A token that may not look any more does not send again either what was missed before: that is
// left until it may.
func TestATokenThatMayNotAnyMoreIsAskedSeldom(t *testing.T) {
	e := newEnv(t)
	e.receive = refuses("a")
	e.missed("a")
	e.run(time.Minute)
	e.fails = fault.Operatorf(fault.ReasonPermissionMissing, "403")
	e.calls = 0
	e.run(4 * time.Hour)
	if e.calls > 20 {
		t.Errorf("%d calls in four hours", e.calls)
	}
	e.fails, e.receive = nil, nil
	e.run(time.Hour)
	e.wantOnce("a")
}

// What was missed by the project that had the name before is asked of no other one.
func TestAnotherProjectGetsTheName(t *testing.T) {
	e := newEnv(t)
	e.receive = refuses("a")
	e.missed("a")
	e.run(time.Minute)
	before := len(e.resent)
	for i := range e.hooks {
		e.hooks[i].Project = 6
	}
	e.run(4 * time.Hour)
	if before == 0 || len(e.resent) > before {
		t.Errorf("sent again: %d times, and %d times when another project had the name", before, len(e.resent)-before)
	}
}
