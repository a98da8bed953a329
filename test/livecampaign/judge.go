// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Violation is a promise that was not kept.
type Violation struct {
	// Promise is its number in docs/reliability.md, or a word for what is promised of the
	// installation.
	Promise string
	// Event and Run are names, empty for none.
	Event, Run string
	Message    string
}

func (v Violation) Error() string { return v.Promise + ": " + v.Message }

// key is the same each time that the violation is seen.
func (v Violation) key() string { return v.Promise + " " + v.Event + " " + v.Run }

// look is the canary at one moment. The PipelineRuns were read before the events, so each run in it
// was planned before.
type look struct {
	runs   []pipelinev1.PipelineRun
	events map[string]v1alpha1.GitEvent
	// refusing is true while patches are being refused. An event whose runs cannot be patched need
	// not settle then.
	refusing bool
}

// judge compares what the cluster shows with what is promised. It judges nothing else.
type judge struct {
	// deadline is the time limit for everything that is promised "in the end".
	deadline time.Duration
	// policy is the name of the policy that refuses patches.
	policy string

	// clock is the time in which the cluster could be read. It does not count the time in which the
	// cluster could not be read or this process was stopped.
	clock    time.Duration
	made     map[string]types.UID         // by delivery and definition
	before   map[string]v1alpha1.GitEvent // of the last look
	since    map[string]time.Duration     // since when something is due, by the key of what it will be
	reported map[string]bool              // by key
	// refused are the events of which a patch was refused, and since when.
	refused map[string]time.Duration
}

func newJudge(deadline time.Duration, policy string) *judge {
	return &judge{
		deadline: deadline,
		policy:   policy,
		made:     map[string]types.UID{},
		since:    map[string]time.Duration{},
		reported: map[string]bool{},
		refused:  map[string]time.Duration{},
	}
}

// see returns the violations that were not reported before. passed is the time since the last look.
func (j *judge) see(now look, passed time.Duration) (broken []Violation) {
	j.clock += passed
	live := map[types.UID]pipelinev1.PipelineRun{}
	for _, run := range now.runs {
		live[run.UID] = run
		broken = append(broken, j.once(run, now.events)...)
	}
	for name, event := range j.before { // read before these runs
		broken = append(broken, contradicted(event, live)...)
		if _, there := now.events[name]; !there && !event.Settled() {
			broken = append(broken, Violation{"I-1", name, "", "the GitEvent is gone, and it had not settled"})
		}
	}
	due := map[string]bool{}
	for _, event := range now.events {
		broken = append(broken, j.never(event)...)
		broken = append(broken, j.patches(event)...)
		for _, v := range unfinished(event, live) {
			due[v.key()] = true
			if j.overdue(v, now.refusing) {
				broken = append(broken, v)
			}
		}
	}
	for key := range j.since {
		if !due[key] {
			delete(j.since, key)
		}
	}
	j.before = now.events
	return j.unreported(broken)
}

// patient reports whether nothing is due, apart from what was reported as overdue.
func (j *judge) patient() bool {
	for key := range j.since {
		if !j.reported[key] {
			return false
		}
	}
	return true
}

func (j *judge) unreported(broken []Violation) (fresh []Violation) {
	for _, v := range broken {
		if !j.reported[v.key()] {
			j.reported[v.key()] = true
			fresh = append(fresh, v)
		}
	}
	return fresh
}

// overdue reports whether something has been due for longer than the deadline. A refused patch is
// retried after as long as it has failed, so its event has that much more time to settle.
func (j *judge) overdue(v Violation, refusing bool) bool {
	since, known := j.since[v.key()]
	if !known || refusing && v.Promise == settles {
		since = j.clock
		j.since[v.key()] = since
	}
	patience := j.deadline
	if first, was := j.refused[v.Event]; was && v.Promise == settles {
		patience += since - first
	}
	return j.clock-since > patience
}

// once checks I-2: each PipelineRun was planned by its event, and is the only one of its delivery
// and definition.
func (j *judge) once(run pipelinev1.PipelineRun, events map[string]v1alpha1.GitEvent) []Violation {
	name := run.Labels[plumbline.EventLabel]
	broken := func(format string, args ...any) []Violation {
		return []Violation{{"I-2", name, run.Name, fmt.Sprintf("PipelineRun %s ", run.Name) + fmt.Sprintf(format, args...)}}
	}
	event, known := events[name]
	if !known {
		return broken("has no GitEvent: there is none of the name %q", name)
	}
	planned := runOf(event, run.Name)
	if planned == nil {
		return broken("was not planned by its event %s", name)
	}
	if earlier := run.Name != planned.Name; !earlier && planned.UID != "" && planned.UID != run.UID {
		return broken("was made a second time: its event %s knows of UID %s, and it has %s", name, planned.UID, run.UID)
	}
	definition := strings.TrimPrefix(run.Annotations[plumbline.RunKeyAnnotation], event.Namespace+"/"+event.Name+"/")
	key := event.Spec.DeliveryKey + " " + definition + " " + run.Labels[plumbline.AttemptLabel]
	if other, made := j.made[key]; made && other != run.UID {
		return broken("is the second one of delivery %s and %s", event.Spec.DeliveryKey, definition)
	}
	j.made[key] = run.UID
	return nil
}

// never finds what must not be true at any moment, in one event alone: I-3, I-4 and I-5.
func (j *judge) never(event v1alpha1.GitEvent) (broken []Violation) {
	for _, run := range event.Status.Runs {
		if run.Refused != nil && strings.Contains(run.Refused.Message, j.policy) {
			broken = append(
				broken,
				Violation{
					"I-3",
					event.Name,
					run.Name,
					"a refused patch was taken for a mistake of the author: " + run.Refused.Message,
				},
			)
		}
		if check := checkOf(event, run.Key()); check != nil && check.Concluded && !over(run) {
			broken = append(
				broken,
				Violation{
					"I-3, I-4",
					event.Name,
					run.Name,
					"the check has a conclusion, and no end of the PipelineRun is recorded",
				},
			)
		}
	}
	reported := event.Status.GetCondition(v1alpha1.GitEventReported)
	if event.Settled() && len(event.Status.Runs) > 0 && !reported.IsTrue() {
		broken = append(
			broken,
			Violation{
				"I-5",
				event.Name,
				"",
				fmt.Sprintf("its reports were given up: %s: %s", reported.GetReason(), reported.GetMessage()),
			},
		)
	}
	return broken
}

// patches counts the events of which a patch was refused. It also checks I-10: nothing else in such
// an event waits for the patch.
func (j *judge) patches(event v1alpha1.GitEvent) (broken []Violation) {
	for _, wait := range event.Status.Waits {
		if !strings.Contains(wait.Message, j.policy) {
			continue
		}
		if _, known := j.refused[event.Name]; !known {
			j.refused[event.Name] = j.clock
		}
		if wait.Step != v1alpha1.StepAnnotate &&
			!strings.HasPrefix(wait.Step, v1alpha1.StepCancel) { // to end a run is to patch it
			broken = append(
				broken,
				Violation{
					"I-10",
					event.Name,
					"",
					fmt.Sprintf("its step %s waits because a patch was refused: %s", wait.Step, wait.Message),
				},
			)
		}
	}
	return broken
}

// contradicted checks I-3 and I-4: the end of a PipelineRun that an event records, and so its
// check, agrees with Tekton. live was read later.
func contradicted(event v1alpha1.GitEvent, live map[types.UID]pipelinev1.PipelineRun) (broken []Violation) {
	for _, run := range event.Status.Runs {
		found, there := live[run.UID]
		if run.Result == nil || !there || found.DeletionTimestamp != nil {
			continue
		}
		want := corev1.ConditionFalse
		if run.Result.Outcome == v1alpha1.OutcomeSucceeded {
			want = corev1.ConditionTrue
		}
		if got := succeeded(found); got != want || run.Result.Outcome == v1alpha1.OutcomeDeleted {
			message := fmt.Sprintf(
				"its event says %s, and the condition Succeeded of the PipelineRun is %s",
				run.Result.Outcome,
				got,
			)
			broken = append(broken, Violation{"I-3, I-4", event.Name, run.Name, message})
		}
	}
	return broken
}

func over(run v1alpha1.Run) bool { return run.Refused != nil || run.Result != nil }

func runOf(event v1alpha1.GitEvent, name string) *v1alpha1.Run {
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		if run.Name == name ||
			slices.ContainsFunc(run.Attempts, func(a v1alpha1.FailedAttempt) bool { return a.Name == name }) {
			return run
		}
	}
	return nil
}

func checkOf(event v1alpha1.GitEvent, key string) *v1alpha1.Check {
	for i := range event.Status.Checks {
		if event.Status.Checks[i].Key == key {
			return &event.Status.Checks[i]
		}
	}
	return nil
}

// waiting are the words of what an event waits for.
func waiting(event v1alpha1.GitEvent) string {
	var words strings.Builder
	for _, wait := range event.Status.Waits {
		fmt.Fprintf(&words, "; %s waits: %s: %s", wait.Step, wait.Reason, wait.Message)
	}
	return words.String()
}

// succeeded returns Tekton's condition Succeeded; Unknown while the run is not finished.
func succeeded(run pipelinev1.PipelineRun) corev1.ConditionStatus {
	if condition := run.Status.GetCondition(apis.ConditionSucceeded); condition != nil {
		return condition.Status
	}
	return corev1.ConditionUnknown
}
