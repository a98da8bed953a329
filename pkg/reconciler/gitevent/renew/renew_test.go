// SPDX-License-Identifier: Apache-2.0

package renew

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func in(d time.Duration) *metav1.Time {
	at := metav1.NewTime(now.Add(d))
	return &at
}

func TestSecretsOfUnfinishedRunsAreKeptUpToDate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		run   v1alpha1.Run
		needs bool
		next  time.Duration
	}{
		"without a secret": {v1alpha1.Run{UID: "u"}, false, 0},
		"not created":      {v1alpha1.Run{Secret: "s"}, false, 0},
		"finished": {
			v1alpha1.Run{UID: "u", Secret: "s", Result: &v1alpha1.Result{}, SecretRenewAt: in(-time.Hour)}, false, 0,
		},
		"just created": {v1alpha1.Run{UID: "u", Secret: "s", SecretRenewAt: in(time.Hour)}, true, time.Hour},
		"owns a fresh one": {
			v1alpha1.Run{UID: "u", Secret: "s", SecretRenewAt: in(time.Minute), SecretOwned: true}, false, time.Minute,
		},
		"owns one that is due":     {v1alpha1.Run{UID: "u", Secret: "s", SecretRenewAt: in(0), SecretOwned: true}, true, 0},
		"owns one of unknown time": {v1alpha1.Run{UID: "u", Secret: "s", SecretOwned: true}, true, 0},
	} {
		if needed, left := needs(&test.run, now), next([]v1alpha1.Run{{}, test.run}, now); needed != test.needs ||
			left != test.next {
			t.Errorf("%s: needs something now %v, in %v; want %v, %v", name, needed, left, test.needs, test.next)
		}
	}
	later, sooner := v1alpha1.Run{UID: "u", Secret: "s", SecretRenewAt: in(time.Hour)},
		v1alpha1.Run{UID: "u", Secret: "s", SecretRenewAt: in(time.Minute)}
	if left := next([]v1alpha1.Run{later, sooner, later}, now); left != time.Minute {
		t.Errorf("the first of several renewals is in %v", left)
	}
}

func TestApplyKeepsWhatARenewalDidNotChange(t *testing.T) {
	t.Parallel()
	run := v1alpha1.Run{SecretOwned: true, SecretRenewAt: in(0)}
	apply(&run, gitauth.Renewed{})
	if !run.SecretOwned || !run.SecretRenewAt.Equal(in(0)) {
		t.Errorf("a failure changed the run: %+v", run)
	}
	run.SecretOwned = false
	apply(&run, gitauth.Renewed{Owned: true, At: in(time.Hour)})
	if !run.SecretOwned || !run.SecretRenewAt.Equal(in(time.Hour)) {
		t.Errorf("a renewal is not recorded: %+v", run)
	}
}

func TestFailedRenewalIsRetriedBeforeTheTokenEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		after time.Duration // 0 for no time of its own
	}{
		"success": {nil, 0}, "an outage": {errors.New("down"), latest},
		"an operator's": {fault.Operatorf("Reason", "no right"), fault.OperatorRetry},
	} {
		if after, _ := backoff.KnownWait(backoff.Requeue(soon(test.err))); after != test.after {
			t.Errorf("%s: retried after %v, want %v", name, after, test.after)
		}
	}
}
