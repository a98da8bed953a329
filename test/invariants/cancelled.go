// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// Cancelling is the name of a violation outside of docs/codes.md: a run was cancelled without a
// cause, or goes on although an event cancelled it.
const Cancelling = "cancelling"

// noted is the last version of an event, and the resource versions at which it was seen first, had
// planned to cancel others, and was settled.
type noted struct {
	v1alpha1.GitEvent

	seen, cancels, settled int64
}

// note records a version of an event. A deleted event stays recorded.
func (h *History) note(v cluster.Version, event *v1alpha1.GitEvent) {
	if v.Object == nil {
		return
	}
	if h.noted == nil {
		h.noted = map[string]*noted{}
	}
	n := h.noted[v.Name]
	if n == nil {
		n = &noted{seen: v.Revision}
		h.noted[v.Name] = n
	}
	if n.UID == event.UID {
		h.recordsStay(v, &n.GitEvent, event)
	}
	n.GitEvent = *event
	n.ManagedFields, n.Payload = nil, nil
	if n.cancels == 0 && event.Status.Plan != nil && event.Status.Plan.Cancels != nil {
		n.cancels = v.Revision
	}
	if n.settled == 0 && event.Settled() {
		n.settled = v.Revision
	}
}

// ends judges a PipelineRun that is asked to end: its event has recorded a cancellation of the
// pipeline before, and each recorded cancellation comes from an event that may cancel it.
func (h *History) ends(v cluster.Version, run *pipelinev1.PipelineRun) {
	event := h.noted[run.Labels[plumbline.EventLabel]]
	if event == nil {
		h.broke(Cancelling, v.Name, "PipelineRun %s is told to end at resource version %d, and no GitEvent has planned it",
			v.Name, v.Revision)
		return
	}
	i := slices.IndexFunc(event.Status.Runs, func(r v1alpha1.Run) bool { return r.Name == run.Name })
	if i < 0 || event.Cancelled(event.Status.Runs[i].Pipeline) == nil {
		h.broke(Cancelling, v.Name,
			"PipelineRun %s is told to end at resource version %d, and its GitEvent %s knows of no cancellation of it", v.Name,
			v.Revision, event.Name)
		return
	}
	for name, value := range event.Annotations {
		from, is := strings.CutPrefix(name, plumbline.CancelAnnotation)
		var why v1alpha1.Cancellation
		if !is || json.Unmarshal([]byte(value), &why) != nil || !why.Covers(event.Status.Runs[i].Pipeline) {
			continue
		}
		from, _, _ = strings.Cut(from, ".") // of many names there is more than one annotation
		if by := h.noted[from]; by == nil || !mayEnd(by, &why, event) {
			h.broke(Cancelling, v.Name, "PipelineRun %s is told to end at resource version %d because of GitEvent %s (%s), "+
				"which may not end what GitEvent %s has started", v.Name, v.Revision, from, why.Why, event.Name)
		}
	}
}

// mayEnd reports whether an event may cancel the runs of another one: both are of one Repository
// and of one pull request or commit. A newer commit of a branch may cancel runs of another commit.
func mayEnd(by *noted, why *v1alpha1.Cancellation, event *noted) bool {
	newer := strings.HasPrefix(why.Why, "superseded by ") // docs/running.md
	if by.Spec.Repository.Origin() != event.Spec.Repository.Origin() {
		return false
	}
	return newer || by.cancels > 0 && by.Spec.Subject() == event.Spec.Subject()
}

// askedToEnd reports whether Tekton was asked to end a PipelineRun.
func askedToEnd(run *pipelinev1.PipelineRun) bool {
	return slices.Contains([]pipelinev1.PipelineRunSpecStatus{
		pipelinev1.PipelineRunSpecStatusCancelled, pipelinev1.PipelineRunSpecStatusCancelledRunFinally,
		pipelinev1.PipelineRunSpecStatusStoppedRunFinally,
	}, run.Spec.Status)
}

// Cancelled returns the effects of a command, or of a closed pull request, that are still missing.
// Each run that it covers, of an event before it, is finished, and its event has recorded the
// cancellation. An event that was settled before all cancellations were sent is left out.
func (h *History) Cancelled() (broken []Violation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	subjects := map[string][]*noted{}
	for _, event := range h.noted {
		subjects[event.Spec.Subject()] = append(subjects[event.Spec.Subject()], event)
	}
	for _, by := range h.noted {
		if by.cancels == 0 || by.Status.Plan == nil || by.Status.Plan.Cancels == nil {
			continue
		}
		for _, event := range subjects[by.Spec.Subject()] {
			if event != by && !event.Spec.Closes() &&
				event.AsRecorded().Precedes(by.AsRecorded(), by.Status.Plan.Cancels.At.Time) {
				broken = append(broken, goOn(by, event)...)
			}
		}
	}
	slices.SortFunc(broken, func(a, b Violation) int { return cmp.Compare(a.Message, b.Message) })
	return broken
}

// goOn returns the runs of an event that another one has cancelled without effect.
func goOn(by, event *noted) (broken []Violation) {
	why, told := by.Status.Plan.Cancels, cmp.Or(by.settled, math.MaxInt64)
	early := event.seen < by.cancels && (event.settled == 0 || event.settled > told)
	for _, run := range event.Status.Runs {
		switch {
		case !why.Covers(run.Pipeline) || why.Ref != "" && why.Ref != event.GitRef():
		case run.Result == nil && run.Refused == nil:
			broken = append(broken, Violated(Cancelling, run.Name, "run %s goes on, and GitEvent %s ends it: %s", run.Name,
				by.Name, why.Why))
		case early && event.Cancelled(run.Pipeline) == nil:
			broken = append(broken, Violated(Cancelling, run.Name,
				"GitEvent %s does not know that GitEvent %s ends its run %s: %s", event.Name, by.Name, run.Name, why.Why))
		}
	}
	return broken
}

// Ended returns how many PipelineRuns were asked to end.
func (h *History) Ended() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range h.runs {
		if run.told {
			n++
		}
	}
	return n
}
