// SPDX-License-Identifier: Apache-2.0

// Package steplogs is the step that adds the last lines of failed steps' logs to the results of
// runs, with secret values masked. A verdict never waits for a log: the step reads logs in the
// background, waits a moment for them, and lets the event be reported. It wakes the event once
// there is more to report.
package steplogs

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

const (
	// Limit is how long a log that cannot be read is read again. The event is not settled before.
	Limit = time.Minute
	// patience is how long a report waits for a log: it takes a worker from other events. So it is
	// less while other logs of the namespace are late.
	patience = time.Second
	less     = 50 * time.Millisecond
	// attemptLimit bounds one attempt to read the logs of one run.
	attemptLimit = 15 * time.Second
	// leastPause and mostPause bound the time between two attempts.
	leastPause = time.Second
	mostPause  = 8 * time.Second
	// maxReads is how many runs' logs are read at once, and maxOfNamespace how many of them are of
	// one namespace. pollSlot is how soon a read that has to wait tries again.
	maxReads       = 16
	maxOfNamespace = 4
	pollSlot       = 100 * time.Millisecond
)

// ofPlan names the Secret with the values of params.
const ofPlan = "the values of its params"

// Step reads the logs of failed runs.
type Step struct {
	Reader *Reader
	// Wake enqueues an event.
	Wake func(event string, after time.Duration)
	// Providers are the Git services, by name.
	Providers map[string]provider.Provider

	mu    sync.Mutex
	reads map[string]map[string]*reading // by event and run
	busy  map[string]int                 // how many reads of a namespace are under way
}

// reading is the read of one run's logs in this process.
type reading struct {
	done   chan struct{} // closed when it has ended
	cancel context.CancelFunc
	left   bool   // the event does not wait for it any more
	of     string // the namespace
	log    v1alpha1.RunLog
}

// Wanted returns the log of a result of a run that has just finished: one that is still to be read,
// or nil if nothing will be read.
func (s *Step) Wanted(a *attempt.Attempt, result *v1alpha1.Result) *v1alpha1.RunLog {
	show := a.Config.LogSnippet.Show
	if result == nil || result.Outcome != v1alpha1.OutcomeFailed || !show && !s.detection(a).Detect {
		return nil
	}
	until := metav1.NewTime(a.Clock.Now().Add(Limit).Truncate(time.Second))
	return &v1alpha1.RunLog{Until: &until, Hidden: !show}
}

// detection returns which lines of logs become annotations: none at a Git service that does not
// show annotations.
func (s *Step) detection(a *attempt.Attempt) config.ErrorDetection {
	d := a.Config.ErrorDetection
	service, _ := provider.For(s.Providers, &a.Event.Spec)
	d.Detect = d.Detect && service.Annotates
	return d
}

// hide removes from a log what the check does not show.
func hide(log *v1alpha1.RunLog) {
	log.Hidden, log.Missing = true, nil
	for i := range log.Steps {
		log.Steps[i].Text, log.Steps[i].Missing = "", nil
	}
	log.Steps = slices.DeleteFunc(log.Steps, func(s v1alpha1.StepLog) bool { return len(s.Sources) == 0 })
}

// Do stores the logs that were read, and starts to read those that are still to be read.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) {
	pending := pendingRuns(&a.Event.Status)
	if len(pending) == 0 {
		return
	}
	values, err := a.StoredPlan.Values(ctx)
	if err != nil && !fault.Is(err, fault.Operator) {
		logging.FromContext(ctx).Warnw("A log waits for the secret values of the plan", "event", a.Event.Name, "error", err)
		a.Wake(leastPause)
		return
	}
	wait := time.NewTimer(s.patience(pending[0].Namespace))
	defer wait.Stop()
	var fresh []*reading
	for _, run := range pending {
		if err != nil { // the values are gone for good
			setLog(run, &v1alpha1.RunLog{Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogSecret, Object: ofPlan}})
			continue
		}
		if r, started := s.read(ctx, a, run, slices.Collect(maps.Values(values))); started {
			fresh = append(fresh, r)
		}
	}
	for _, r := range fresh {
		select {
		case <-r.done:
		case <-wait.C:
			wait.Reset(0) // the time is up for the others, too
		}
	}
	for _, run := range pending {
		if log := s.take(a.Event.Name, run.Name); log != nil {
			setLog(run, log)
		}
	}
}

func (s *Step) patience(namespace string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, runs := range s.reads {
		for _, r := range runs {
			if r.left && r.of == namespace {
				return less
			}
		}
	}
	return patience
}

// setLog stores the log of a run.
func setLog(run *v1alpha1.Run, log *v1alpha1.RunLog) {
	if run.Result.Log.Hidden {
		hide(log)
	}
	run.Result.Log = log
}

// pendingRuns returns the runs whose logs are still to be read.
func pendingRuns(s *v1alpha1.GitEventStatus) (runs []*v1alpha1.Run) {
	for i := range s.Runs {
		if run := &s.Runs[i]; run.Result != nil && run.Result.Log.Pending() {
			runs = append(runs, run)
		}
	}
	return runs
}

// read returns the read of a run's logs, and whether it was started now.
func (s *Step) read(
	ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, values []string,
) (r *reading, started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r = s.reads[a.Event.Name][run.Name]; r != nil {
		return r, false
	}
	steps, bytes := v1alpha1.LogLimit(&a.Event.Status)
	request := Request{
		Namespace: run.Namespace, Name: run.Name, UID: run.UID, Secret: run.Secret, Values: values,
		Tasks: hasTasks(a.Seen[run.Name]), Steps: steps, Lines: a.Config.LogSnippet.Lines, Bytes: bytes,
		Detection: s.detection(a),
	}
	// A process that takes over tries at least once.
	left := max(attemptLimit, run.Result.Log.Until.Sub(a.Clock.Now()))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	r = &reading{done: make(chan struct{}), cancel: cancel, of: run.Namespace}
	if s.reads == nil {
		s.reads, s.busy = map[string]map[string]*reading{}, map[string]int{}
	}
	if s.reads[a.Event.Name] == nil {
		s.reads[a.Event.Name] = map[string]*reading{}
	}
	s.reads[a.Event.Name][run.Name] = r
	go s.run(ctx, a.Event.Name, request, r)
	return r, true
}

func hasTasks(run *pipelinev1.PipelineRun) bool {
	return run != nil && len(run.Status.ChildReferences) > 0
}

// run reads a log. A panic costs the log alone: the verdict must not wait for a defect here.
func (s *Step) run(ctx context.Context, event string, request Request, r *reading) {
	defer s.ended(event, r)
	defer func() {
		if cause := recover(); cause != nil {
			logging.FromContext(ctx).Errorw("Reading a log panicked", "event", event, "run", request.Name,
				"cause", cause, "stack", string(debug.Stack()))
		}
	}()
	r.log = v1alpha1.RunLog{Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogUnavailable}}
	s.untilRead(ctx, request, &r.log)
}

// ended wakes the event if it does not wait for the read any more.
func (s *Step) ended(event string, r *reading) {
	r.cancel()
	s.mu.Lock()
	left := r.left
	close(r.done)
	s.mu.Unlock()
	if left {
		s.Wake(event, 0)
	}
}

// untilRead reads logs until everything is there, or ctx ends.
func (s *Step) untilRead(ctx context.Context, request Request, log *v1alpha1.RunLog) {
	for pause := leastPause; s.acquire(ctx, request.Namespace); pause = min(2*pause, mostPause) {
		one, cancel := context.WithTimeout(ctx, attemptLimit)
		read, again := s.Reader.Read(one, request)
		cancel()
		s.release(request.Namespace)
		if texts(read) >= texts(*log) { // the last attempt may have had little time
			*log = read
		}
		if !again || !sleep(ctx, pause) {
			return
		}
	}
}

// texts returns how many steps have a text.
func texts(log v1alpha1.RunLog) (n int) {
	for i := range log.Steps {
		if log.Steps[i].Text != "" {
			n++
		}
	}
	return n
}
