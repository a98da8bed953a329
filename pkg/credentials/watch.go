// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// Look is how often the Secrets are read that events wait for. Plumbline may not list or watch
	// Secrets, so it reads them by name: within the 30 s of docs/codes.md B8, with time left to
	// act.
	Look = 20 * time.Second
	// lookTimeout bounds one read.
	lookTimeout = 10 * time.Second
)

// PollSecrets calls LookOnce until ctx is done, each time after every, or after Look if that is 0,
// with some jitter.
func (p *Pool) PollSecrets(ctx context.Context, every time.Duration, open func(event string) bool) {
	const jitter = 0.1
	if every <= 0 {
		every = Look
	}
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) { p.LookOnce(ctx, open) }, every, jitter, true)
}

// LookOnce reads each Secret once, however many events wait because of it, and wakes events that
// were tried with another content of it. open reports whether an event is unsettled and this
// process leads it; other events are forgotten. After an error of the API server, the next call
// tries again.
func (p *Pool) LookOnce(ctx context.Context, open func(event string) bool) {
	for _, name := range p.waiting.secrets(open) {
		now, known := p.contentNow(ctx, name)
		if !known {
			return
		}
		for _, event := range p.waiting.saw(name, now) {
			p.options.Wake(event, 0)
		}
	}
}

func (p *Pool) contentNow(ctx context.Context, name types.NamespacedName) (content, bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return contentOf(p.options.Kube.Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{}))
}

// RepositoryChanged wakes the events that wait for an administrator if their Repository's spec, or
// the global Repository's, has changed. before and after are an informer's; before is nil if the
// Repository was created. open returns the unsettled events; it is called only if it is needed.
func (p *Pool) RepositoryChanged(before, after any, open func() []*v1alpha1.GitEvent) {
	was, _ := before.(*pacv1alpha1.Repository)
	is, ok := after.(*pacv1alpha1.Repository)
	if !ok || was != nil && equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return
	}
	global := is.Namespace == p.options.Namespace && is.Name == p.options.GlobalRepository
	for _, event := range open() {
		ref := event.Spec.Repository
		if awaitsOperator(event) && (global || ref.Namespace == is.Namespace && ref.Name == is.Name) {
			p.waiting.retry(event.Name)
			p.options.Wake(event.Name, 0)
		}
	}
}

func awaitsOperator(event *v1alpha1.GitEvent) bool {
	return slices.ContainsFunc(event.Status.Waits, func(w v1alpha1.Wait) bool {
		return w.Class == fault.Operator.String()
	})
}
