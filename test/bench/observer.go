// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonclient "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// event is one push, or one PipelineRun of the bare client, and when what became of it was seen;
// the zero time is not yet.
type event struct {
	id, repo string // id is the commit, or the name of a bare PipelineRun
	delivery forge.Delivery

	due      time.Time
	code     int           // of the answer to the delivery, 0 for none
	answered time.Time     // that answer, or that of the create
	made     chan struct{} // closed when the PipelineRun is seen

	created, ended time.Time // of the PipelineRun, as a watch shows it
	check, final   time.Time // its first check and the one with a conclusion, as the Git service accepts them
}

// observer sees the PipelineRuns through a watch and the checks at the Git service, and notes the
// times.
type observer struct {
	mu     sync.Mutex
	events map[string]*event
	sample *pipelinev1.PipelineRun // the first that Plumbline made, as created
}

func newObserver() *observer { return &observer{events: map[string]*event{}} }

// expect adds events before anything happens.
func (o *observer) expect(events ...*event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range events {
		e.made = make(chan struct{})
		o.events[e.id] = e
	}
}

// note changes an event or reads it.
func (o *observer) note(e *event, change func(e *event)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(e)
}

// write notes a check.
func (o *observer) write(w forge.Write) {
	if !w.Applied || w.HeadSHA == "" {
		return
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.events[w.HeadSHA]
	if e == nil {
		return
	}
	if e.check.IsZero() {
		e.check = now
	}
	if w.Conclusion != "" && e.final.IsZero() {
		e.final = now
	}
}

// run notes what a PipelineRun shows.
func (o *observer) run(run *pipelinev1.PipelineRun) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.events[run.Labels[pipelinesascode.SHA]]
	if e == nil {
		return
	}
	if e.created.IsZero() {
		e.created = now
		close(e.made)
	}
	if c := run.Status.GetCondition(apis.ConditionSucceeded); c != nil && !c.IsUnknown() && e.ended.IsZero() {
		e.ended = now
	}
	if o.sample == nil && e.repo != "" {
		o.sample = run.DeepCopy()
	}
}

// watch shows PipelineRuns of all namespaces until ctx ends. A watch that the server ends is begun
// again where it ended.
func (o *observer) watch(ctx context.Context, client tektonclient.Interface) error {
	runs := client.TektonV1().PipelineRuns(metav1.NamespaceAll)
	list, err := runs.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion,
		&cache.ListWatch{WatchFuncWithContext: runs.Watch})
	if err != nil {
		return err
	}
	go func() {
		for change := range w.ResultChan() {
			if run, is := change.Object.(*pipelinev1.PipelineRun); is && change.Type != watch.Deleted {
				o.run(run)
			}
		}
	}()
	return nil
}
