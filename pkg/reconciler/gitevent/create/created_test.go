// SPDX-License-Identifier: Apache-2.0

package create

import "testing"

func TestCreatedRemembersRunsUntilTheyAreStored(t *testing.T) {
	var m Created
	m.Forget("push-1") // of what it does not know
	m.Note("push-1", "e1", "build", "r1")
	m.Note("push-1", "e1", "test", "r2")
	m.Note("push-2", "e2", "build", "r3")
	if m.UID("push-1", "e1", "build") != "r1" || m.UID("push-1", "e1", "test") != "r2" ||
		m.UID("push-2", "e2", "build") != "r3" {
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
	if m.UID("push-2", "e2", "test") != "" || m.UID("push-2", "e2", "build") != "r3" {
		t.Error("what is recorded is not forgotten, or something else is")
	}
	m.Forget("push-1")
	if m.UID("push-1", "another", "build") != "" || m.UID("push-2", "e2", "build") != "r3" {
		t.Error("forgotten is another event than the one that was named")
	}
}
