// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"testing"
)

// The author of a pull request may write /cancel. With fifty names that nothing has it must not
// keep a maintainer's "/cancel build" from ending anything: the reply says that it did.
func TestNeedsSkipsCancellationsOfUnknownNames(t *testing.T) {
	e := cancelledBy(t)
	e.Status.Plan, e.Status.Runs = &Plan{}, []Run{{Pipeline: "build", UID: "1"}}
	for i := range MaxCancellations {
		c := &Cancellation{By: "author", Names: []string{fmt.Sprint("nonsense", i)}}
		if !e.Needs(c) {
			continue
		}
		name, value, err := c.CancelsAs(fmt.Sprint("comment-", i))
		if err != nil {
			t.Fatal(err)
		}
		e.Annotations[name] = value
	}
	if build := (&Cancellation{By: "maintainer", Names: []string{"build"}}); !e.Needs(build) {
		t.Errorf("after %d cancellations of nothing build cannot be cancelled any more", len(e.cancellations()))
	}
}
