// SPDX-License-Identifier: Apache-2.0

// Package cancel ends runs before they are over. An event that cancels, because its pull request
// was closed or because somebody asked for it, tells the open events that have started what it
// ends, in an annotation of each, and does nothing else. Each of those ends what it has started
// itself, so that every PipelineRun has one writer. See docs/adr/0035.
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
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/clients"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/supersede"
)

// Window is how long after its pull request was closed an event looks for others once more.
// Deliveries overtake each other: one that happened before may be recorded while this one has
// looked already.
//
// One that is recorded later than that looks for the close itself. An event does so if it was
// recorded more than two fifths of the Window after it happened, and not at the end of it, because
// the clocks of receivers and controllers may differ by the rest: 3 min.
const Window = 5 * time.Minute

// Step does both: it tells others what the event cancels, and ends the event's own runs that are
// cancelled.
type Step struct {
	Events Events
	// Open is the cache of the open events, trimmed.
	Open   listers.GitEventNamespaceLister
	Tekton tektonv1.PipelineRunsGetter
	// Window is the constant if it is 0.
	Window time.Duration
	// Newer ends what a newer commit has taken the place of.
	Newer *supersede.Step
}

// New returns the step of an installation.
func New(c clients.Cluster, o clients.Options) *Step {
	events := c.Plumbline.GitEvents(o.Namespace)
	return &Step{
		Events: events, Open: c.Open.GitEvents(o.Namespace), Tekton: c.Tekton, Window: o.Times.CloseWindow,
		Newer: &supersede.Step{Events: events, From: c.Open.From},
	}
}

// Events is what is asked of the GitEvents' client.
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

// Do returns what it waits for, nil when there is nothing left to do for now.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	return attempt.Merge([]error{s.notify(ctx, a), s.Newer.TellOlder(ctx, a), s.stopRuns(ctx, a)})
}

func (s *Step) window() time.Duration {
	if s.Window > 0 {
		return s.Window
	}
	return Window
}
