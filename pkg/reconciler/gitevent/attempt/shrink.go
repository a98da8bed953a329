// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxDecisions is how many decisions a settled event keeps. They answer the question why a pipeline
// did not run.
const maxDecisions = 20

// Shrink removes from an event all but what redeliveries are compared with, and what shows its
// outcome. late is true if another process may still create a secret of the event.
func Shrink(event *v1alpha1.GitEvent, now time.Time, late bool) {
	Summarize(event)
	settled := metav1.NewTime(now)
	st := &event.Status
	st.Phase, st.SettledAt, st.Checks, st.Waits = v1alpha1.PhaseSettled, &settled, nil, nil
	st.LateSecrets = late
	if st.Reply != nil {
		st.Reply.Release()
	}
	for _, comment := range []*v1alpha1.CommentState{st.Validation, st.Failures} {
		if comment != nil {
			comment.Release()
		}
	}
	st.Plan.Manifests, st.Plan.Blobs, st.Plan.Secret = nil, nil, ""
	if len(st.Plan.Decisions) > maxDecisions {
		st.Plan.Decisions = st.Plan.Decisions[:maxDecisions]
	}
	for i := range st.Runs {
		st.Runs[i].Patched, st.Runs[i].MaxKeepRuns, st.Runs[i].LinkParams = "", nil, nil
		st.Runs[i].InfrastructureRetries = 0
		st.Runs[i].Secret, st.Runs[i].SecretRenewAt, st.Runs[i].SecretOwned = "", nil, false
		for j := range st.Runs[i].Attempts {
			st.Runs[i].Attempts[j].Patched = ""
		}
		if result := st.Runs[i].Result; result != nil {
			result.Message = cmp.Or(result.Brief, result.Message) // /why repeats it
			result.Text, result.Brief, result.Log = "", "", nil
		}
	}
	v1alpha1.Shrink(st)
}
