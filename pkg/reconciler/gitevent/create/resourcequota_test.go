// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func refusedCreate(object string) error {
	return fault.Throttledf(fault.ReasonQuota, time.Minute,
		"pipelineruns.tekton.dev %q is forbidden: exceeded quota: runs", object)
}

func TestFullNamespaceRefusesAllItsRuns(t *testing.T) {
	t.Parallel()
	m := &FullNamespaces{}
	if err := m.Full("team", "b", start); err != nil {
		t.Fatalf("nothing was refused, yet: %v", err)
	}
	m.Note("team", "a", fmt.Errorf("creating it: %w", refusedCreate("a")), 0, start)
	f := fault.Of(m.Full("team", "b", start.Add(Apart-time.Second)))
	if f == nil || f.Class != fault.Throttled || f.Reason != fault.ReasonQuota || f.RetryAfter != time.Minute {
		t.Fatalf("right after a refusal for a minute another object is told %+v", f)
	}
	if want := `creating it: pipelineruns.tekton.dev "b" is forbidden: exceeded quota: runs`; f.Message != want {
		t.Errorf("it is told %q, want %q", f.Message, want)
	}
	if err := m.Full("other", "b", start); err != nil {
		t.Errorf("another namespace is full, too: %v", err)
	}
	if err := m.Full("team", "b", start.Add(Apart)); err != nil {
		t.Errorf("later it is not tried: %v", err)
	}
}

// A refused creation that took long is not soon followed by another one.
func TestSlowRefusalClosesANamespaceForLonger(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{Apart / rest / 2: Apart, time.Second: rest * time.Second,
		time.Hour: longest} {
		m := &FullNamespaces{}
		m.Note("team", "a", refusedCreate("a"), took, start)
		if m.Full("team", "b", start.Add(want-time.Millisecond)) == nil {
			t.Errorf("after a refusal that took %v the next one is tried before %v", took, want)
		}
		if err := m.Full("team", "b", start.Add(want)); err != nil {
			t.Errorf("after a refusal that took %v the next one is not tried after %v: %v", took, want, err)
		}
	}
}

func TestOnlyAnAcceptedCreationOpensANamespace(t *testing.T) {
	t.Parallel()
	m := &FullNamespaces{}
	m.Note("team", "a", refusedCreate("a"), 0, start)
	m.Note("team", "b", fault.Transientf(fault.ReasonTimeout, "no answer"), 0, start)
	m.Note("team", "c", errors.New("something else"), 0, start)
	if m.Full("team", "d", start) == nil {
		t.Error("an error that says nothing about the quota opened the namespace")
	}
	m.Note("team", "b", nil, 0, start)
	if err := m.Full("team", "d", start); err != nil {
		t.Errorf("an object was created, and the next one is not tried: %v", err)
	}
}
