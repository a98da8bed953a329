// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

// Of two comments within one second, which come to the receiver within one second as well, the
// service's numbers tell which was written first: a /test that was written after a /cancel is not
// ended by it.
func TestPrecedesOrdersCommentsOfOneSecondByID(t *testing.T) {
	cancel, before, after := at("created", 100, 110), at("created", 100, 110), at("created", 100, 110)
	before.Comment, cancel.Comment, after.Comment = &Comment{ID: 9}, &Comment{ID: 10}, &Comment{ID: 11}
	if !before.Precedes(cancel, cancel.Happened()) {
		t.Error("what was written before is not ended")
	}
	if after.Precedes(cancel, cancel.Happened()) {
		t.Error("what was written after is ended")
	}
}

// Whoever closes a pull request and opens it again within one second, as scripts do to start its
// pipelines, finds it running: what is open and has not run is asked for by nobody else.
func TestPrecedesOrdersReopeningAfterCloseOfSameSecond(t *testing.T) {
	closed, reopened := at("closed", 100, 110), at("reopened", 100, 110)
	if reopened.Precedes(closed, closed.Happened()) {
		t.Error("the reopening is ended by the close")
	}
}
