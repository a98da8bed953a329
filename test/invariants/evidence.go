// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// Evidence is the cluster and a Git service at one moment, by the keys the invariants join them
// on.
type Evidence struct {
	Events     []v1alpha1.GitEvent
	Planned    map[string]v1alpha1.Run // by the name of the first PipelineRun
	Live       []pipelinev1.PipelineRun
	Gone       []pipelinev1.PipelineRun // that Remember was told of
	Deliveries []Delivery
	Writes     []Write
	Checks     []Check // oldest first
}

// Service is a Git service with everything that happened there so far.
type Service interface {
	Deliveries() []Delivery
	// Writes are in the order the service decided them.
	Writes() []Write
	// Checks are those of a commit, oldest first.
	Checks(sha string) []Check
}

// Reader reads repeatedly, and caches the checks of commits without new writes. Its zero value is
// ready.
type Reader struct{ known map[string]shown }

// shown are the checks of a commit after so many writes.
type shown struct {
	writes int
	checks []Check
}

// Read reads with a new Reader.
func Read(ctx context.Context, service Service, i *installation.Installation) (*Evidence, error) {
	return (&Reader{}).Read(ctx, service, i)
}

// Read reads the service first: a check must not be newer than its run. It reads the PipelineRuns
// before the events: each was planned before it was created.
func (r *Reader) Read(ctx context.Context, service Service, i *installation.Installation) (*Evidence, error) {
	e := &Evidence{Deliveries: service.Deliveries(), Writes: service.Writes()}
	e.Checks = r.checks(service, e.Writes)
	runs, err := i.Tekton.TektonV1().PipelineRuns("").List(ctx,
		metav1.ListOptions{LabelSelector: plumbline.InstallationLabel + "=" + i.Namespace})
	if err != nil {
		return nil, fmt.Errorf("reading the PipelineRuns: %w", err)
	}
	events, err := i.Plumbline.PlumblineV1alpha1().GitEvents(i.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the GitEvents: %w", err)
	}
	e.Live, e.Events = runs.Items, events.Items
	e.join()
	return e, nil
}

// checks returns those of all commits with writes, in the order of their first writes. A write
// that names no commit may be about any.
func (r *Reader) checks(service Service, writes []Write) (all []Check) {
	var commits []string
	counts := map[string]int{}
	for _, write := range writes {
		if counts[write.SHA]++; counts[write.SHA] == 1 && write.SHA != "" {
			commits = append(commits, write.SHA)
		}
	}
	if r.known == nil {
		r.known = map[string]shown{}
	}
	for _, sha := range commits {
		writes := counts[sha] + counts[""]
		if r.known[sha].writes != writes {
			r.known[sha] = shown{writes: writes, checks: service.Checks(sha)}
		}
		all = append(all, r.known[sha].checks...)
	}
	return all
}

// join finds the planned runs, and the names that services store as a digest.
func (e *Evidence) join() {
	e.Planned = map[string]v1alpha1.Run{}
	names := map[string]string{}
	for _, event := range e.Events {
		names[digestOf(event.Name)] = event.Name
		names[digestOf(status.ApprovalID(&event))] = status.ApprovalID(&event)
		for _, run := range event.Status.Runs {
			e.Planned[run.Key()] = run
			names[digestOf(run.Key())] = run.Key()
		}
	}
	for i := range e.Writes {
		e.Writes[i].ExternalID = cmp.Or(names[e.Writes[i].ExternalID], e.Writes[i].ExternalID)
	}
	for i := range e.Checks {
		e.Checks[i].ExternalID = cmp.Or(names[e.Checks[i].ExternalID], e.Checks[i].ExternalID)
	}
}

// attemptOf returns which attempt of which planned run has a PipelineRun of this name, and the UID
// that the event has recorded for it; 0 if none has.
func (e *Evidence) attemptOf(made *pipelinev1.PipelineRun) (planned v1alpha1.Run, uid types.UID, attempt int) {
	for _, run := range e.Planned {
		if run.Namespace != made.Namespace {
			continue
		}
		if run.Name == made.Name {
			return run, run.UID, run.Attempt()
		}
		for i, earlier := range run.Attempts {
			if earlier.Name == made.Name {
				return run, earlier.UID, i + 1
			}
		}
	}
	return v1alpha1.Run{}, "", 0
}

// Never returns the permanent violations: of I-2, I-3, I-4 and I-7. Those of I-3 and I-4 are final
// when all runs are finished.
func (e *Evidence) Never() []Violation {
	return slices.Concat(e.Once(), e.Failures(), e.Successes(), e.Reopened())
}

// Eventually returns what I-1, I-5 and I-8 still miss. It must be empty when faults are over.
func (e *Evidence) Eventually() []Violation {
	return slices.Concat(e.Accounted(), e.Shown(), e.Current())
}

// digested begins the external id of a check that has only a digest of it.
const digested = "sha256:"

// digestOf returns the external id of a check whose service stores only a digest.
func digestOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return digested + hex.EncodeToString(sum[:16])
}
