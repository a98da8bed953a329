// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// C11: a denial that repeats an outage's text is retried for EchoLimit, and then accepted.
func TestJudgeRefusesCancelsOrWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	echo := fault.FromKube(fault.VerbCreate, apierrors.NewForbidden(pipelinev1.Resource("pipelineruns"), "run",
		errors.New(`admission webhook "policy" denied the request: dial tcp 10.0.0.1:443: i/o timeout`)))
	since := func(ago time.Duration, reason string) *v1alpha1.Wait {
		return &v1alpha1.Wait{Reason: reason, Since: metav1.NewTime(now.Add(-ago))}
	}
	for name, test := range map[string]struct {
		err    error
		before *v1alpha1.Wait
		giveUp bool
		want   string
	}{
		"success":                 {nil, nil, false, ""},
		"an outage":               {fault.Transientf(fault.ReasonTimeout, "slow"), nil, false, "waits"},
		"a mistake of the author": {fault.Invalidf("AdmissionDenied", "no"), nil, false, "refused: AdmissionDenied"},
		"an echo":                 {echo, nil, false, "waits"},
		"an echo after a minute":  {echo, since(time.Minute, echo.Reason), false, "waits"},
		"an echo for long": {
			echo, since(EchoLimit+time.Second, echo.Reason), false, "refused: AdmissionDenied",
		},
		"an echo after a long outage": {echo, since(EchoLimit+time.Second, fault.ReasonTimeout), false, "waits"},
		"the namespace is being deleted": {fault.Operatorf(fault.ReasonNamespaceTerminating, "it goes"), nil, false,
			"cancelled: " + fault.ReasonNamespaceTerminating},
		"superseded": {
			fault.Ignoredf(attempt.ReasonSuperseded, "newer"), nil, false, "cancelled: " + attempt.ReasonSuperseded,
		},
		"cancelled": {
			fault.Ignoredf(attempt.ReasonCancelled, "asked"), nil, false, "cancelled: " + attempt.ReasonCancelled,
		},
		"no installation": {fault.Operatorf(fault.ReasonInstallationGone, "gone"), nil, false, "waits"},
		"no installation, and waiting is useless": {
			fault.Operatorf(fault.ReasonInstallationGone, "gone"), nil, true, "cancelled: " + attempt.ReasonGivenUp,
		},
		"another error when waiting is useless": {fault.Operatorf(fault.ReasonQuota, "full"), nil, true, "waits"},
	} {
		v, got := judge(test.err, test.before, now, test.giveUp), ""
		switch {
		case v.refused != nil:
			got = "refused: " + v.refused.Reason
		case v.result != nil && v.result.Outcome == v1alpha1.OutcomeCancelled:
			got = "cancelled: " + v.result.Reason
		case v.wait != nil:
			got = "waits"
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
