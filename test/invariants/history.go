// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// What a history is told of.
const (
	theRepositories = "pipelinesascode.tekton.dev/repositories"
	theEvents       = "plumbline.dev/gitevents"
	theRuns         = "tekton.dev/pipelineruns"
)

// Histories are the resources that a History needs.
func Histories() []string { return []string{theRepositories, theEvents, theRuns} }

// History judges every version of the Repositories, the GitEvents and the PipelineRuns, one after
// the other. It finds what a poll of the cluster misses: how many run at the same time at each
// resource version (I-6), the order in which slots are given, and what existed at a deletion. Its
// methods may be called from any goroutine.
type History struct {
	// Installation is the namespace of the Plumbline that it judges.
	Installation string
	// Patience is how long a run must have been seen waiting until no other may get a slot before
	// it: the caches of a controller lag by as long as it was cut off or paused.
	Patience time.Duration

	mu           sync.Mutex
	repositories map[string]*limited // by namespace and name
	runs         map[string]*made    // by namespace and name: every run that was ever there
	waiting      map[string]*queued  // by namespace and name: the runs that are planned and not there
	events       map[string][]string // by the event's name: those of waiting that are of it
	// contenders are all runs that were ever planned, by the event's name and the pipeline.
	contenders map[string]map[string]*contender
	// noted are all events that were ever there, by name.
	noted  map[string]*noted
	broken []Violation
	most   int // runs that ran at once of a Repository with a limit
	given  int // slots
}

// made is a PipelineRun.
type made struct {
	pipelinev1.PipelineRun // without its spec
	repository, pipeline   string
	active                 bool // it is there, nothing holds it pending, and it is not over
	gone                   *time.Time
	// ended is when it was over by the first version that said so.
	ended *time.Time
	// keep is how many ended runs its author wants to keep of the pipeline, -1 for all; kept how
	// many were there when it was deleted that had not ended before it.
	keep, kept int
	told       bool // to end
	// marked: it has said that its end is reported.
	marked bool
}

// queued is a run that is planned and not created.
type queued struct {
	repository, event, pipeline string
	received                    time.Time
	// since is when it first said that it waits for a slot, zero if it does not.
	since time.Time
	// cancelled: its event has been told that it is not to be created any more.
	cancelled bool
}

func key(namespace, name string) string { return namespace + "/" + name }

// Saw judges the next version.
func (h *History) Saw(v cluster.Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == nil {
		h.repositories, h.runs, h.waiting, h.events = map[string]*limited{}, map[string]*made{}, map[string]*queued{},
			map[string][]string{}
	}
	switch v.Resource {
	case theRuns:
		h.run(v)
	case theRepositories:
		h.repository(v)
	case theEvents:
		h.event(v)
	}
}

// run judges a version of a PipelineRun.
func (h *History) run(v cluster.Version) {
	id := key(v.Namespace, v.Name)
	run := h.runs[id]
	if v.Object == nil {
		if run != nil {
			run.active, run.gone, run.kept = false, &v.At, h.kept(run)
		}
		return
	}
	var now pipelinev1.PipelineRun
	if err := json.Unmarshal(v.Object, &now); err != nil {
		h.unread(v, err)
		return
	}
	if now.Labels[plumbline.InstallationLabel] != h.Installation {
		return
	}
	run = h.known(v, &now)
	if !run.told && askedToEnd(&now) {
		run.told = true
		h.ends(v, &now)
	}
	run.end(&now)
	run.marked = run.marked || resources.MarkedReported(now.Labels)
	was := run.active
	run.active = !now.IsPending() && !now.IsDone()
	now.Spec, now.ManagedFields, now.Status.PipelineSpec, now.Status.Provenance = pipelinev1.PipelineRunSpec{}, nil, nil,
		nil
	now.Annotations = nil
	run.PipelineRun = now
	delete(h.waiting, id)
	if run.active && !was {
		h.starts(v, run)
	}
}

// known returns what is known of a PipelineRun that has a new version.
func (h *History) known(v cluster.Version, now *pipelinev1.PipelineRun) *made {
	id := key(v.Namespace, v.Name)
	run := h.runs[id]
	if run != nil && run.UID == now.UID {
		return run
	}
	if run != nil {
		h.broke("I-2", now.Name, "PipelineRun %s was made again at resource version %d", id, v.Revision)
	}
	run = created(now)
	h.runs[id] = run
	return run
}

// created returns a PipelineRun that was unknown.
func created(now *pipelinev1.PipelineRun) *made {
	run := &made{
		repository: key(now.Namespace, now.Annotations[pipelinesascode.Repository]),
		pipeline:   now.Annotations[pipelinesascode.OriginalPRName], keep: -1,
	}
	if keep, err := strconv.Atoi(now.Annotations[pipelinesascode.MaxKeepRuns]); err == nil {
		run.keep = keep
	}
	return run
}

// event records which runs are to be created.
func (h *History) event(v cluster.Version) {
	var event v1alpha1.GitEvent
	if v.Namespace != h.Installation {
		return
	}
	if v.Object != nil {
		if err := json.Unmarshal(v.Object, &event); err != nil {
			h.unread(v, err)
			return
		}
		h.contends(v, &event)
	} else {
		h.contends(v, nil)
	}
	var wait []string
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		id := key(run.Namespace, run.Name)
		if !run.Creatable() || h.runs[id] != nil || event.Settled() {
			continue
		}
		wait = append(wait, id)
		h.waits(v, id, &event, run)
		h.waiting[id].cancelled = event.Cancelled(run.Pipeline) != nil
	}
	for _, id := range h.events[v.Name] {
		if !slices.Contains(wait, id) {
			delete(h.waiting, id)
		}
	}
	h.events[v.Name] = wait
	h.note(v, &event)
}

// waits records a run that is to be created, and since when it waits for a slot.
func (h *History) waits(v cluster.Version, id string, event *v1alpha1.GitEvent, run *v1alpha1.Run) {
	if h.waiting[id] == nil {
		h.waiting[id] = &queued{
			repository: key(event.Spec.Repository.Namespace, event.Spec.Repository.Name), event: v.Name, pipeline: run.Pipeline,
			received: event.CreationTimestamp.Time,
		}
		if event.CreationTimestamp.IsZero() { // as tests write them
			h.waiting[id].received = event.Spec.ReceivedAt.Time
		}
	}
	if h.waiting[id].since.IsZero() && waitsFor(event, run, concurrencyLimit) {
		h.waiting[id].since = v.At
	}
}

// waitsFor reports whether a run says that it waits for one of these reasons.
func waitsFor(event *v1alpha1.GitEvent, run *v1alpha1.Run, reasons ...string) bool {
	return slices.ContainsFunc(event.Status.Waits, func(w v1alpha1.Wait) bool {
		return w.Step == v1alpha1.StepCreate+run.Name && slices.Contains(reasons, w.Reason)
	})
}

// The reasons of what waits for a slot (docs/running.md), and for a ResourceQuota.
const concurrencyLimit, quota = "ConcurrencyLimit", "QuotaExceeded"

// repository judges a version of a Repository.
func (h *History) repository(v cluster.Version) {
	id := key(v.Namespace, v.Name)
	if v.Object == nil {
		delete(h.repositories, id)
		return
	}
	var now pacv1alpha1.Repository
	if err := json.Unmarshal(v.Object, &now); err != nil {
		h.unread(v, err)
		return
	}
	if h.repositories[id] == nil {
		h.repositories[id] = &limited{slots: map[string]int64{}}
	}
	h.gives(v, h.repositories[id], &now)
}

// unread records a version that cannot be judged: then the limit is unknown.
func (h *History) unread(v cluster.Version, err error) {
	h.broke("I-6", v.Name, "%s %s/%s cannot be read at resource version %d: %v", v.Resource, v.Namespace, v.Name,
		v.Revision, err)
}

func (h *History) broke(invariant, subject, format string, args ...any) {
	h.broken = append(h.broken, Violated(invariant, subject, format, args...))
}

// recordsStay is I-1 over time: what an event has recorded of a run does not disappear from it.
func (h *History) recordsStay(v cluster.Version, before, after *v1alpha1.GitEvent) {
	for _, was := range before.Status.Runs {
		i := slices.IndexFunc(after.Status.Runs, func(r v1alpha1.Run) bool { return r.Key() == was.Key() })
		switch {
		case !was.Started() && was.Result == nil: // it may be planned anew
		case i < 0:
			h.broke("I-1", was.Name, "GitEvent %s does not know its run %s any more at resource version %d", v.Name, was.Name,
				v.Revision)
		case was.UID != "" && !slices.Contains(uidsOf(&after.Status.Runs[i]), was.UID):
			h.broke("I-1", was.Name, "GitEvent %s takes back at resource version %d that its run %s is there", v.Name,
				v.Revision, was.Name)
		case was.Result != nil && after.Status.Runs[i].Result == nil:
			h.broke("I-1", was.Name, "GitEvent %s takes back at resource version %d that its run %s is over", v.Name, v.Revision,
				was.Name)
		}
	}
}

// uidsOf returns the UIDs of the PipelineRuns of a run.
func uidsOf(run *v1alpha1.Run) []types.UID {
	all := []types.UID{run.UID}
	for _, earlier := range run.Attempts {
		all = append(all, earlier.UID)
	}
	return all
}

// Never returns the permanent violations.
func (h *History) Never() []Violation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.broken)
}

// Most returns how many PipelineRuns of one Repository with a limit ran at the same time, and
// Given how many slots were given.
func (h *History) Most() (most, given int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most, h.given
}
