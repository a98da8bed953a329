// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const late = 45 * time.Second

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// shown returns a reply as text.
func shown(r v1alpha1.CommentState) string {
	return fmt.Sprintf("begun %v, holder %q, late until %v, failing %v", r.Begun != nil, r.Holder, r.LateUntil,
		r.FailingSince != nil)
}

func TestBegunWaitsForWhatAnotherProcessMayHaveSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, want v1alpha1.CommentState
		left         time.Duration
	}{
		"the first attempt":               {v1alpha1.CommentState{}, v1alpha1.CommentState{Begun: at(now), Holder: "me"}, 0},
		"another event wrote at the time": {v1alpha1.CommentState{Begun: at(now)}, v1alpha1.CommentState{Begun: at(now)}, 0},
		"another process may have sent it": {v1alpha1.CommentState{Begun: at(now), Holder: "another"},
			v1alpha1.CommentState{Begun: at(now), Holder: "me", LateUntil: at(now.Add(late))}, late},
		"this process may have sent it": {v1alpha1.CommentState{Begun: at(now), Holder: "me"},
			v1alpha1.CommentState{Begun: at(now), Holder: "me", LateUntil: at(now.Add(late))}, late},
		"it may still take effect": {v1alpha1.CommentState{
			Begun: at(now), Holder: "me", LateUntil: at(now.Add(time.Second)),
		}, v1alpha1.CommentState{Begun: at(now), Holder: "me", LateUntil: at(now.Add(time.Second))}, time.Second},
		"it cannot take effect any more": {
			v1alpha1.CommentState{Begun: at(now), Holder: "me", LateUntil: at(now)}, v1alpha1.CommentState{Begun: at(now), Holder: "me"}, 0,
		},
		"a third process takes over from it": {v1alpha1.CommentState{Begun: at(now), Holder: "another", LateUntil: at(now)},
			v1alpha1.CommentState{Begun: at(now), Holder: "me", LateUntil: at(now.Add(late))}, late},
	} {
		got, left := begun(test.before, "me", now, late)
		if shown(got) != shown(test.want) || left != test.left {
			t.Errorf("%s: %s, wait %v; want %s, %v", name, shown(got), left, shown(test.want), test.left)
		}
	}
}

func TestAfterFailureOthersMayWriteUnlessAPostMayTakeEffect(t *testing.T) {
	t.Parallel()
	writing := v1alpha1.CommentState{Begun: at(now), Holder: "me"}
	waiting := v1alpha1.CommentState{Begun: at(now), Holder: "me", LateUntil: at(now)}
	for name, test := range map[string]struct {
		before v1alpha1.CommentState
		f      fault.Error
		want   v1alpha1.CommentState
	}{
		"no slot": {
			writing, fault.Error{Class: fault.Throttled, Reason: fault.ReasonBusy}, v1alpha1.CommentState{Begun: at(now)},
		},
		"no slot, and one may be late": {waiting, fault.Error{Class: fault.Throttled, Reason: fault.ReasonBusy}, waiting},
		"a conflict": {
			writing, fault.Error{Class: fault.Conflict}, v1alpha1.CommentState{Begun: at(now), FailingSince: at(now)},
		},
		"an unknown outcome": {writing, fault.Error{Class: fault.Transient, Unknown: true},
			v1alpha1.CommentState{Begun: at(now), Holder: "me", LateUntil: at(now.Add(late)), FailingSince: at(now)}},
		"a failure": {waiting, fault.Error{Class: fault.Transient}, v1alpha1.CommentState{FailingSince: at(now)}},
	} {
		if got := afterFailure(test.before, &test.f, now, late); shown(got) != shown(test.want) {
			t.Errorf("%s: %s, want %s", name, shown(got), shown(test.want))
		}
	}
}

func TestContestedLetsTheOldestEventWrite(t *testing.T) {
	t.Parallel()
	event := func(name string, age time.Duration, begun *metav1.Time) *v1alpha1.GitEvent {
		e := &v1alpha1.GitEvent{
			ObjectMeta: metav1.ObjectMeta{
				Name: name,
			},
			Status: v1alpha1.GitEventStatus{Reply: &v1alpha1.Reply{CommentState: v1alpha1.CommentState{Begun: begun}}},
		}
		e.Spec.ReceivedAt, e.Spec.HappenedAt = metav1.NewTime(now.Add(-age)), at(now.Add(-age))
		return e
	}
	self := event("self", time.Minute, at(now))
	for name, test := range map[string]struct {
		other         *v1alpha1.GitEvent
		waits, second bool
	}{
		"does not write":            {event("other", time.Hour, nil), false, false},
		"is older":                  {event("other", time.Hour, at(now)), true, true},
		"is younger":                {event("other", time.Second, at(now)), true, false},
		"began, and never finished": {event("other", time.Hour, at(now.Add(-writingLimit-time.Second))), false, false},
	} {
		if waits, second := answers().contested([]*v1alpha1.GitEvent{self, test.other}, now); waits != test.waits ||
			second != test.second {
			t.Errorf("the other one %s: waits %v, second %v", name, waits, second)
		}
	}
}

func TestOnlyPermanentErrorsAreRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"an outage":            {fault.Transientf(fault.ReasonTimeout, "slow"), false},
		"a rate limit":         {fault.Throttledf("RateLimited", time.Hour, "later"), false},
		"refused credentials":  {fault.Operatorf(fault.ReasonCredentialsRefused, "no"), false},
		"a missing permission": {fault.Operatorf("Forbidden", "no"), true},
		"a huge conversation": {
			fault.New(fault.Transient, fault.ReasonGitUnreachable, fmt.Errorf("%w than 8 MB", provider.ErrTooLarge)), true,
		},
	} {
		if got := errors.As(refused(test.err), new(*refusal)); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
