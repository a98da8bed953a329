// SPDX-License-Identifier: Apache-2.0

package create

import (
	"fmt"
	"testing"
)

func TestCreated(t *testing.T) {
	var m Created
	m.Forget("push-1") // of what it does not know
	m.Note("push-1", "e1", "build", "r1")
	m.Note("push-1", "e1", "test", "r2")
	m.Note("push-2", "e2", "build", "r3")
	if m.UID("push-1", "e1", "build") != "r1" || m.UID("push-1", "e1", "test") != "r2" || m.UID("push-2", "e2", "build") != "r3" {
		t.Error("what was noted is not remembered")
	}
	if m.UID("push-1", "e1", "lint") != "" || m.UID("push-3", "e3", "build") != "" {
		t.Error("what was not noted is remembered")
	}
	if m.UID("push-1", "another", "build") != "" {
		t.Error("an event that was recorded again has the runs of the first")
	}
	m.Note("push-1", "another", "build", "r4")
	if m.UID("push-1", "another", "test") != "" || m.UID("push-1", "another", "build") != "r4" {
		t.Error("the runs of two events are mixed")
	}
	m.Note("push-2", "e2", "test", "r5")
	m.Recorded("push-2", "test")
	m.Recorded("push-2", "lint")
	m.Recorded("push-3", "lint")
	if m.UID("push-2", "e2", "test") != "" || m.UID("push-2", "e2", "build") != "r3" || m.count != 2 {
		t.Error("what is recorded is not forgotten, or something else is")
	}
	m.Forget("push-1")
	if m.UID("push-1", "another", "build") != "" || m.UID("push-2", "e2", "build") != "r3" {
		t.Error("forgotten is another event than the one that was named")
	}
}

func TestCreatedHasABound(t *testing.T) {
	var m Created
	for i := range 3 * maxRuns {
		m.Note(fmt.Sprint("push-", i/7), "e", fmt.Sprint("run-", i), "r")
		if m.count > maxRuns {
			t.Fatalf("%d are remembered", m.count)
		}
	}
	if last := 3*maxRuns - 1; m.UID(fmt.Sprint("push-", last/7), "e", fmt.Sprint("run-", last)) != "r" {
		t.Error("what was noted last is not remembered")
	}
	for i := range 3 * maxRuns {
		m.Recorded(fmt.Sprint("push-", i/7), fmt.Sprint("run-", i))
	}
	if m.count != 0 || len(m.events) != 0 {
		t.Errorf("%d runs of %d events are left", m.count, len(m.events))
	}
}
