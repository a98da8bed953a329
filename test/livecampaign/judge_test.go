// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	pkgfault "github.com/plumbline-ci/plumbline/pkg/fault"
)

const policyOfTest = "canary.app.campaign.plumbline.dev"

// scene is one event with one PipelineRun, as it goes on.
type scene struct {
	event    v1alpha1.GitEvent
	run      pipelinev1.PipelineRun
	gone     bool // the event
	noRun    bool
	more     []pipelinev1.PipelineRun
	refusing bool
}

func running() *scene {
	return &scene{
		event: v1alpha1.GitEvent{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: "push-1"},
			Spec:       v1alpha1.GitEventSpec{DeliveryKey: "delivery-1"},
			Status: v1alpha1.GitEventStatus{
				Disposition: v1alpha1.DispositionRuns,
				Runs:        []v1alpha1.Run{{Pipeline: "build", Namespace: "canary", Name: "build-a", UID: "uid-1"}},
				Checks:      []v1alpha1.Check{{Key: "build-a", ID: "1"}},
			},
		},
		run: madeRun("build-a", "uid-1"),
	}
}

func madeRun(name string, uid types.UID) pipelinev1.PipelineRun {
	return pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "canary", Name: name, UID: uid, Labels: map[string]string{plumbline.EventLabel: "push-1"},
		Annotations: map[string]string{plumbline.RunKeyAnnotation: "plumbline/push-1/.tekton/a.yaml#0"},
	}}
}

// ends is what Tekton says.
func (s *scene) ends(status corev1.ConditionStatus) {
	s.run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: status})
}

// records is what the event says.
func (s *scene) records(outcome v1alpha1.Outcome, concluded bool) {
	s.event.Status.Runs[0].Result = &v1alpha1.Result{Outcome: outcome}
	s.event.Status.Checks[0].Concluded = concluded
}

func (s *scene) settles() {
	s.event.Status.Phase, s.event.Status.Checks, s.event.Status.Waits = v1alpha1.PhaseSettled, nil, nil
	s.event.MarkTrue(v1alpha1.GitEventReported, "", "")
}

func (s *scene) waits(step string) {
	s.event.Status.Waits = []v1alpha1.Wait{
		{Step: step, Reason: "AdmissionDenied", Message: "ValidatingAdmissionPolicy '" + policyOfTest + "' denied request"},
	}
}

func (s *scene) look() look {
	now := look{runs: append([]pipelinev1.PipelineRun{*s.run.DeepCopy()}, s.more...),
		events: map[string]v1alpha1.GitEvent{}, refusing: s.refusing}
	if s.noRun {
		now.runs = nil
	}
	if !s.gone {
		now.events[s.event.Name] = *s.event.DeepCopy()
	}
	return now
}

// The judge finds each violation that the cluster can show. It does not report what is as promised,
// or may still become so.
func TestTheJudge(t *testing.T) {
	t.Parallel()
	const deadline = time.Minute
	late := func(s *scene, see func(time.Duration)) { see(lookEvery); see(deadline + time.Second) }
	for name, c := range map[string]struct {
		play func(s *scene, see func(time.Duration))
		want string // promise and words of the only violation; "" for none
	}{
		"all is as promised, and patches are refused meanwhile": {func(s *scene, see func(time.Duration)) {
			see(0)
			s.refusing = true
			s.waits(v1alpha1.StepAnnotate)
			s.ends(corev1.ConditionFalse)
			see(lookEvery)
			s.records(v1alpha1.OutcomeFailed, true)
			see(2 * deadline)
			see(2 * deadline)
			s.refusing = false
			see(deadline)
			s.settles()
			see(2 * deadline)
		}, ""},
		"what was refused for long is tried again after as long": {func(s *scene, see func(time.Duration)) {
			s.refusing = true
			s.waits(v1alpha1.StepAnnotate)
			see(0)
			s.ends(corev1.ConditionTrue)
			s.records(v1alpha1.OutcomeSucceeded, true)
			see(5 * deadline)
			s.refusing = false
			see(5 * deadline)
			s.settles()
			see(lookEvery)
		}, ""},
		"what was refused is not tried again": {func(s *scene, see func(time.Duration)) {
			s.refusing = true
			s.waits(v1alpha1.StepAnnotate)
			see(0)
			s.ends(corev1.ConditionTrue)
			s.records(v1alpha1.OutcomeSucceeded, true)
			see(deadline)
			s.refusing = false
			see(2*deadline + time.Second)
		}, "settled: nothing is left to do, and it does not settle"},
		"a run goes on for hours": {func(_ *scene, see func(time.Duration)) { see(lookEvery); see(time.Hour) }, ""},
		"a run that nobody planned": {func(s *scene, see func(time.Duration)) {
			s.event.Status.Runs = nil
			see(0)
		}, "I-2: PipelineRun build-a was not planned by its event push-1"},
		"it is never planned": {func(s *scene, see func(time.Duration)) {
			s.event.Status = v1alpha1.GitEventStatus{
				Waits: []v1alpha1.Wait{{Step: "plan", Reason: "SecretMissing", Message: "create it"}},
			}
			s.noRun = true
			late(s, see)
		}, "I-1: it is recorded, and nothing has become of it; plan waits: SecretMissing: create it"},
		"nothing becomes of it": {func(s *scene, see func(time.Duration)) {
			s.event.Status.Runs[0].UID, s.event.Status.Waits = "",
				[]v1alpha1.Wait{{Step: "create/build-a", Reason: "QuotaExceeded", Message: "no room"}}
			s.noRun = true
			late(s, see)
		}, "I-1: the PipelineRun is neither made nor refused; create/build-a waits: QuotaExceeded: no room"},
		"an open event is gone": {func(s *scene, see func(time.Duration)) {
			s.noRun = true
			see(0)
			s.gone = true
			see(lookEvery)
		}, "I-1: the GitEvent is gone, and it had not settled"},
		"the event was deleted": {
			func(s *scene, see func(time.Duration)) { s.gone = true; see(0) }, "I-2: PipelineRun build-a has no GitEvent",
		},
		"it was made a second time": {func(s *scene, see func(time.Duration)) {
			see(0)
			s.run.UID = "uid-2"
			see(lookEvery)
		}, "I-2: PipelineRun build-a was made a second time: its event push-1 knows of UID uid-1, and it has uid-2"},
		"it was made a second time, and nobody has written that down": {func(s *scene, see func(time.Duration)) {
			s.event.Status.Runs[0].UID = ""
			see(0)
			s.run.UID = "uid-2"
			see(lookEvery)
		}, "I-2: PipelineRun build-a is the second one of delivery delivery-1 and .tekton/a.yaml#0"},
		"one definition has two runs": {func(s *scene, see func(time.Duration)) {
			s.event.Status.Runs = append(s.event.Status.Runs, v1alpha1.Run{Name: "build-b", UID: "uid-2"})
			s.more = []pipelinev1.PipelineRun{madeRun("build-b", "uid-2")}
			see(0)
		}, "I-2: PipelineRun build-b is the second one of delivery delivery-1 and .tekton/a.yaml#0"},
		"a failure is a success": {func(s *scene, see func(time.Duration)) {
			s.ends(corev1.ConditionFalse)
			s.records(v1alpha1.OutcomeSucceeded, true)
			see(0)
			see(lookEvery)
		}, "I-3, I-4: its event says Succeeded, and the condition Succeeded of the PipelineRun is False"},
		"what goes on has failed": {func(s *scene, see func(time.Duration)) {
			s.records(v1alpha1.OutcomeFailed, true)
			see(0)
			see(lookEvery)
		}, "I-3, I-4: its event says Failed, and the condition Succeeded of the PipelineRun is Unknown"},
		"what is there was deleted": {func(s *scene, see func(time.Duration)) {
			s.ends(corev1.ConditionFalse)
			s.records(v1alpha1.OutcomeDeleted, true)
			see(0)
			see(lookEvery)
		}, "I-3, I-4: its event says Deleted"},
		"it ended between the reading of runs and events": {func(s *scene, see func(time.Duration)) {
			s.records(v1alpha1.OutcomeFailed, true)
			see(0)
			s.ends(corev1.ConditionFalse)
			see(lookEvery)
		}, ""},
		"a check is concluded for nothing": {func(s *scene, see func(time.Duration)) {
			s.event.Status.Checks[0].Concluded = true
			see(0)
		}, "I-3, I-4: the check has a conclusion, and no end of the PipelineRun is recorded"},
		"a refused patch is the author's mistake": {func(s *scene, see func(time.Duration)) {
			s.waits("x")
			s.event.Status.Runs[0].Refused = &v1alpha1.Refusal{
				Reason: "AdmissionDenied", Message: s.event.Status.Waits[0].Message,
			}
			s.event.Status.Waits, s.event.Status.Checks[0].Concluded = nil, true
			see(0)
		}, "I-3: a refused patch was taken for a mistake of the author"},
		"the report waits for the patch": {func(s *scene, see func(time.Duration)) {
			s.waits(v1alpha1.StepReport)
			see(0)
		}, "I-10: its step report waits because a patch was refused"},
		"a cancellation is refused meanwhile": {func(s *scene, see func(time.Duration)) {
			s.refusing = true
			s.waits(v1alpha1.StepCancel + "build-a")
			see(0)
		}, ""},
		"the next one waits for a slot": {func(s *scene, see func(time.Duration)) {
			s.event.Status.Runs = append(s.event.Status.Runs,
				v1alpha1.Run{Pipeline: "test", Namespace: "canary", Name: "test-a"})
			s.event.Status.Waits = []v1alpha1.Wait{
				{Step: v1alpha1.StepCreate + "test-a", Reason: pkgfault.ReasonConcurrencyLimit},
			}
			late(s, see)
		}, ""},
		"it waits for a slot that nobody has": {func(s *scene, see func(time.Duration)) {
			s.event.Status.Runs[0].UID = ""
			s.event.Status.Waits = []v1alpha1.Wait{
				{Step: v1alpha1.StepCreate + "build-a", Reason: pkgfault.ReasonConcurrencyLimit},
			}
			s.noRun = true
			late(s, see)
		}, "I-1: the PipelineRun is neither made nor refused"},
		"the end is not reported while patches are refused": {func(s *scene, see func(time.Duration)) {
			s.refusing = true
			s.ends(corev1.ConditionTrue)
			s.records(v1alpha1.OutcomeSucceeded, false)
			late(s, see)
		}, "I-5, I-10: the end of the PipelineRun is recorded, and its check has no conclusion"},
		"the end is not noticed": {func(s *scene, see func(time.Duration)) {
			s.ends(corev1.ConditionTrue)
			late(s, see)
		}, "I-5, I-10: the PipelineRun has ended or is gone, and its event does not know"},
		"the reports were given up": {func(s *scene, see func(time.Duration)) {
			s.ends(corev1.ConditionTrue)
			s.records(v1alpha1.OutcomeSucceeded, true)
			s.settles()
			s.event.MarkWaiting(v1alpha1.GitEventReported, "InstallationGone", "the App was uninstalled")
			see(0)
		}, "I-5: its reports were given up: InstallationGone: the App was uninstalled"},
		"it does not settle": {func(s *scene, see func(time.Duration)) {
			s.ends(corev1.ConditionTrue)
			s.records(v1alpha1.OutcomeSucceeded, true)
			late(s, see)
		}, "settled: nothing is left to do, and it does not settle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, j := running(), newJudge(deadline, policyOfTest)
			var got []string
			c.play(s, func(passed time.Duration) {
				for _, v := range j.see(s.look(), passed) {
					got = append(got, v.Error())
				}
			})
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("violations %q, want %q", got, c.want)
			}
			for range 2 { // what has been told is not told again, and what is due is told in the end
				j.see(s.look(), 2*deadline)
			}
			if again := j.see(s.look(), 2*deadline); len(again) > 0 || !j.patient() && !s.refusing {
				t.Errorf("in the end it tells %v, patient %v", again, j.patient())
			}
		})
	}
}

// An event of which a patch was refused is counted, once.
func TestRefusedPatchesAreCounted(t *testing.T) {
	t.Parallel()
	s, j := running(), newJudge(time.Minute, policyOfTest)
	j.see(s.look(), 0)
	if len(j.refused) != 0 {
		t.Errorf("%v before any was", j.refused)
	}
	s.waits(v1alpha1.StepAnnotate)
	j.see(s.look(), lookEvery)
	j.see(s.look(), lookEvery)
	if len(j.refused) != 1 {
		t.Errorf("%v, want one event", j.refused)
	}
}
