// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// maxFacts is how many Kubernetes Events about runs one write of a status causes.
	maxFacts = 10
	// maxFact bounds the text of one, in bytes.
	maxFact = 400
)

// addFacts adds the Kubernetes Events about what normally happens: what was decided, and which
// PipelineRuns started and ended. A fact is what a write of the status adds to the stored one. So
// each is reported once, and never before it is stored. One that a killed process has not sent is
// lost.
func (r *Record) addFacts() {
	before, after := r.stored, &r.event.Status
	if after.Plan.Decided() && !before.Plan.Decided() {
		r.addDecision(after)
	}
	added := 0
	for i := range after.Runs {
		run := &after.Runs[i]
		if added < maxFacts && r.addRun(runNamed(before, run.Name), run) {
			added++
		}
	}
}

// runNamed returns the run of a status, an empty one if it has none of that name.
func runNamed(s *v1alpha1.GitEventStatus, name string) *v1alpha1.Run {
	for i := range s.Runs {
		if s.Runs[i].Name == name {
			return &s.Runs[i]
		}
	}
	return &v1alpha1.Run{}
}

// addDecision adds what was decided about an event. It adds nothing about comments that start
// nothing: an untrusted user can write thousands of them.
func (r *Record) addDecision(s *v1alpha1.GitEventStatus) {
	switch {
	case s.Disposition == v1alpha1.DispositionRuns:
		r.normal(reasonMatched, "pipelines start for "+about(s))
	case r.event.Spec.Comment != nil:
	case s.Disposition == v1alpha1.DispositionPending:
		r.normal(reasonPermissionDenied, "an approval is needed for "+about(s))
	case s.Disposition == v1alpha1.DispositionSkipped:
		r.normal(reasonSkipped, "CI is skipped for "+about(s))
	case s.Disposition == v1alpha1.DispositionIgnored:
		r.normal(reasonNoMatch, "nothing starts for "+about(s))
	}
}

// about returns what a decision is about, and the decision as a sentence.
func about(s *v1alpha1.GitEventStatus) string {
	return fmt.Sprintf("%s at %.7s: %s", s.Ref, s.Plan.HeadSHA, cmp.Or(s.Plan.Message, s.Plan.Reason))
}

// addRun adds what has changed about a run. It reports whether anything has changed.
func (r *Record) addRun(before, run *v1alpha1.Run) bool {
	name := fmt.Sprintf("%s (PipelineRun %s)", strings.TrimSuffix(run.Pipeline, "-"), run.Name)
	switch result := run.Result; {
	case result != nil && before.Result == nil && run.UID != "":
		why := result.Words()
		switch result.Outcome {
		case v1alpha1.OutcomeSucceeded:
			r.normal(reasonRunSucceeded, name+" succeeded")
		case v1alpha1.OutcomeFailed:
			r.warning(reasonRunFailed, name+" failed: "+why)
		default:
			r.normal(reasonRunEnded, name+" ended without a result: "+cmp.Or(why, string(result.Outcome)))
		}
	case run.UID != "" && before.UID == "":
		r.normal(reasonRunStarted, name+" started")
	case run.Refused != nil && before.Refused == nil:
		r.warning(reasonRunRefused, name+" was refused: "+run.Refused.Message)
	default:
		return false
	}
	return true
}

func (r *Record) normal(reason, message string) {
	r.waits.NormalEvent(reason, text.Shorten(message, maxFact, text.Bytes))
}

// warning adds a warning that no operator has to act on.
func (r *Record) warning(reason, message string) {
	message = fmt.Sprintf("%s: %s", r.event.Name, text.Shorten(message, maxFact, text.Bytes))
	r.waits.events = append(r.waits.events, kubeEvent{wait: v1alpha1.Wait{Reason: reason}, message: message, fact: true})
}
