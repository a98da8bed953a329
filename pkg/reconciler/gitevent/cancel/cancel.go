// SPDX-License-Identifier: Apache-2.0

// Package cancel stops runs before they finish. An event cancels because its pull request was
// closed or because a user asked for it. It annotates the unsettled events whose runs it stops, and
// does nothing else. Each of those stops its own runs, so that every PipelineRun has one writer.
// See docs/adr/0035.
package cancel

import (
	"context"
	"time"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/supersede"
)

// Window is how long a close event stays unsettled. When it ends, the event searches once more for
// events of its pull request: deliveries overtake each other.
//
// An event that was recorded more than two fifths of the Window (2 min) after it happened searches
// for the close itself. The other 3 min allow for clocks of receivers and controllers that differ.
const Window = 5 * time.Minute

// Step annotates other events with what the event cancels, and stops the event's own runs that are
// cancelled.
type Step struct {
	Events Events
	// Open is the cache of the unsettled events, trimmed.
	Open   listers.GitEventNamespaceLister
	Tekton tektonv1.PipelineRunsGetter
	// Window is the constant Window if it is 0.
	Window time.Duration
	// Newer stops runs that a newer commit has replaced.
	Newer *supersede.Step
}

// New returns the step of an installation.
func New(c deps.Cluster, o deps.Options) *Step {
	events := c.Plumbline.GitEvents(o.Namespace)
	return &Step{
		Events: events, Open: c.Open.GitEvents(o.Namespace), Tekton: c.Tekton, Window: o.Times.CloseWindow,
		Newer: &supersede.Step{Events: events, From: c.Open.From},
	}
}

// Events is the part of the GitEvents' client that is needed.
type Events interface {
	List(ctx context.Context, o metav1.ListOptions) (*v1alpha1.GitEventList, error)
	Patch(
		ctx context.Context,
		name string,
		pt types.PatchType,
		data []byte,
		o metav1.PatchOptions,
		subresources ...string,
	) (*v1alpha1.GitEvent, error)
}

// Do returns what it waits for, nil if nothing is left to do for now.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	return attempt.Merge([]error{s.notify(ctx, a), s.Newer.TellOlder(ctx, a), s.stopRuns(ctx, a)})
}

func (s *Step) window() time.Duration {
	if s.Window > 0 {
		return s.Window
	}
	return Window
}
