// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

func TestMergeHasTheFirstMessageAndAllTimes(t *testing.T) {
	t.Parallel()
	down, busy := fault.Transientf(fault.ReasonTimeout, "down"),
		fault.Throttledf(fault.ReasonBusy, time.Second, "others are next")
	untried := &notDue{fault.Throttledf(fault.ReasonBusy, time.Hour, "it has just failed")}
	for what, test := range map[string]struct {
		faults []error
		says   string
		after  time.Duration
		class  fault.Class
	}{
		"none":                     {[]error{nil, nil}, "<nil>", 0, 0},
		"none was tried":           {[]error{nil, untried}, untried.Error(), time.Hour, fault.Throttled},
		"the tried one counts":     {[]error{untried, down}, "down", 0, fault.Transient},
		"another has a time":       {[]error{down, nil, busy}, "down", time.Second, fault.Transient},
		"an error without a class": {[]error{errors.New("boom"), busy}, "boom", time.Second, fault.Transient},
	} {
		err := Merge(test.faults)
		after, _ := backoff.KnownWait(backoff.Requeue(err))
		if fmt.Sprint(err) != test.says || after != test.after {
			t.Errorf("%s: %v, after %v; want %s, after %v", what, err, after, test.says, test.after)
		}
		if f := fault.Of(err); f != nil && f.Class != test.class {
			t.Errorf("%s is %v, want %v", what, f.Class, test.class)
		}
	}
	if !Skipped(Merge([]error{untried, untried})) {
		t.Error("steps that were not tried count as tried")
	}
}
