// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// service answers each Put with an ID, or fails, and notes whether it was told that the check is
// the only one.
type service struct {
	id   string
	err  error
	sole bool
}

func (s *service) Put(_ context.Context, _ git.Head, _ string, _ status.Check, sole bool) (string, error) {
	s.sole = sole
	return s.id, s.err
}

// ADR 26: Put looks for duplicates unless this process made every post of a check and got an answer
// to each.
func TestSendRecordsWhatTheGitServiceAccepted(t *testing.T) {
	t.Parallel()
	begun := status.Check{Key: "run", Name: "CI", State: status.InProgress}
	ended := status.Check{Key: "run", Name: "CI", State: status.Completed, Conclusion: status.Success}
	shared := begun
	shared.Shared = true
	failed, recheck := errors.New("502"), at(start)
	for name, test := range map[string]struct {
		known    map[string]string // what this process has posted, by post
		check    status.Check
		accepted v1alpha1.Check
		answer   service
		want     v1alpha1.Check
		sole     bool
		knows    bool // the post, for the next time
	}{
		"the first post": {map[string]string{"p": ""}, begun, v1alpha1.Check{}, service{id: "1"},
			v1alpha1.Check{ID: "1", Accepted: status.Digest(begun)}, true, true},
		"a post of an unknown check": {nil, begun, v1alpha1.Check{}, service{id: "1"},
			v1alpha1.Check{ID: "1", Accepted: status.Digest(begun)}, false, false},
		"another process posted it": {map[string]string{"p": "1"}, begun, v1alpha1.Check{ID: "2"}, service{id: "2"},
			v1alpha1.Check{ID: "2", Accepted: status.Digest(begun)}, false, false},
		"other events post it": {map[string]string{"p": "1"}, shared, v1alpha1.Check{ID: "1"}, service{id: "1"},
			v1alpha1.Check{ID: "1", Accepted: status.Digest(shared)}, false, false},
		"a late post is possible": {map[string]string{"p": "1"}, begun, v1alpha1.Check{ID: "1", RecheckAt: recheck},
			service{id: "1"}, v1alpha1.Check{ID: "1", RecheckAt: recheck, Accepted: status.Digest(begun)}, false, false},
		"a conclusion": {map[string]string{"p": "1"}, ended, v1alpha1.Check{ID: "1"}, service{id: "1"},
			v1alpha1.Check{ID: "1", Accepted: status.Digest(ended), Concluded: true}, true, false},
		"it was recreated": {map[string]string{"p": "1"}, begun, v1alpha1.Check{ID: "1"}, service{id: "9"},
			v1alpha1.Check{ID: "9", Accepted: status.Digest(begun)}, true, true},
		"a failure": {map[string]string{"p": "1"}, ended, v1alpha1.Check{ID: "1", Accepted: "x"},
			service{err: failed}, v1alpha1.Check{ID: "1", Accepted: "x"}, true, false},
		"a duplicate stays open": {
			nil, ended, v1alpha1.Check{}, service{id: "1", err: failed}, v1alpha1.Check{ID: "1"}, false, false,
		},
	} {
		s := &Step{}
		for post, id := range test.known {
			s.posts.Remember(post, id)
		}
		got, err := s.send(t.Context(), &test.answer, message{check: test.check, accepted: test.accepted, post: "p"})
		if got != test.want || test.answer.sole != test.sole || !errors.Is(err, test.answer.err) {
			t.Errorf("%s: %+v, sole %v, %v; want %+v, sole %v", name, got, test.answer.sole, err, test.want, test.sole)
		}
		if knows := s.posts.Take("p", got.ID); knows != test.knows {
			t.Errorf("%s: the post is remembered: %v, want %v", name, knows, test.knows)
		}
	}
}

// I-8, E6: where a post that takes effect late reopens a check, the check is looked up once more
// after its conclusion.
func TestOnlyFinalChecksAreLookedUpOnceMore(t *testing.T) {
	t.Parallel()
	ended := status.Check{Key: "run", State: status.Completed, Conclusion: status.Success}
	digest := status.Digest(ended)
	for name, test := range map[string]struct {
		rules       rules
		check       v1alpha1.Check
		late, final bool
		due         bool // now, and later is what comes first after the start
		later       bool
	}{
		"nothing is posted":           {rules{}, v1alpha1.Check{}, true, false, false, false},
		"it is posted":                {rules{}, v1alpha1.Check{ID: "1"}, false, false, false, false},
		"it is posted and may reopen": {rules{reopens: true}, v1alpha1.Check{ID: "1"}, true, false, false, false},
		"it is concluded": {
			rules{reopens: true}, v1alpha1.Check{ID: "1", Concluded: true, Accepted: digest}, false, true, false, false,
		},
		"its look-up is due": {
			rules{}, v1alpha1.Check{ID: "1", Concluded: true, Accepted: digest, RecheckAt: at(start)}, false, true, true, false,
		},
		"its look-up is due later": {rules{}, v1alpha1.Check{
			ID: "1", Concluded: true, Accepted: digest, RecheckAt: at(start.Add(time.Second)),
		}, false, true, false, true},
		"another version is accepted": {
			rules{}, v1alpha1.Check{ID: "1", Concluded: true, Accepted: "x", RecheckAt: at(start)}, false, true, false, false,
		},
		"it asks for approval": {
			rules{pending: true}, v1alpha1.Check{ID: "1", Accepted: digest, RecheckAt: at(start)}, false, false, false, false,
		},
		"it asks for approval, and may reopen": {rules{pending: true, reopens: true},
			v1alpha1.Check{ID: "1", Accepted: digest, RecheckAt: at(start)}, true, true, true, false},
	} {
		r, c := test.rules, test.check
		if late, final, due := r.lateMatters(&c), r.final(&c), r.due(ended, &c, start); late != test.late ||
			final != test.final || due != test.due {
			t.Errorf("%s: a late post matters %v, final %v, due %v", name, late, final, due)
		}
		if next := r.next([]v1alpha1.Check{{}, c}, start); (next != nil) != test.later {
			t.Errorf("%s: later %v", name, next)
		}
		if left := r.accepted(c, start).RecheckAt; c.RecheckAt != nil && (left == nil) != (test.final && !test.later) {
			t.Errorf("%s: once it is accepted again the look-up is at %v", name, left)
		}
	}
	if (rules{}).due(ended, nil, start) {
		t.Error("a check without a record is looked up")
	}
}

func TestIntentsAndConclusionsAreStoredBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	begun, ended := &status.Check{State: status.InProgress}, &status.Check{Conclusion: status.Success}
	mine, others := &v1alpha1.Check{Intent: true, Holder: "mine"}, &v1alpha1.Check{Intent: true, Holder: "another"}
	for name, test := range map[string]struct {
		check            *status.Check
		accepted, stored *v1alpha1.Check
		want             bool
	}{
		"a new intent":         {begun, mine, nil, true},
		"a takeover":           {begun, mine, others, true},
		"a stored intent":      {begun, mine, mine, false},
		"a stored conclusion?": {ended, mine, mine, true},
	} {
		if got := needsWrite(test.check, test.accepted, test.stored); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRemainingChecksWaitLongerTheLongerChecksAreRefused(t *testing.T) {
	t.Parallel()
	for refused, want := range map[time.Duration]time.Duration{0: leastRefused, time.Minute: 15 * time.Second,
		time.Hour: mostRefused} {
		wait := &v1alpha1.Wait{Reason: fault.ReasonGitRejected, Since: metav1.NewTime(start)}
		if got := refusedFor(wait, start.Add(refused)); got != want {
			t.Errorf("after %v: %v, want %v", refused, got, want)
		}
	}
	if got := refusedFor(&v1alpha1.Wait{Reason: fault.ReasonTimeout, Since: metav1.NewTime(start)},
		start.Add(time.Hour)); got != leastRefused {
		t.Errorf("after another wait: %v", got)
	}
}
