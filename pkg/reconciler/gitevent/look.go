// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// CredentialLook is how often the Secrets are read that events wait for. Nobody may list or watch Secrets, so they are
	// asked for by name: within the 30 s of spec/resilience.md B8, with time left to act.
	CredentialLook = 20 * time.Second
	// lookTimeout bounds one read.
	lookTimeout = 10 * time.Second
)

// lookAround reads what events are held by until ctx is done, at moments that differ from replica to replica.
func (r *Reconciler) lookAround(ctx context.Context) {
	const jitter = 0.1
	every := r.CredentialLook
	if every <= 0 {
		every = CredentialLook
	}
	wait.JitterUntilWithContext(ctx, r.look, every, jitter, true)
}

// look reads each Secret once, however many events are held by it, and wakes those that were tried with something else.
// Only events that this process leads and that are open count; another process looks for the others.
func (r *Reconciler) look(ctx context.Context) {
	names := r.held.secrets(func(event string) bool {
		_, err := r.unsettled(event)
		return err == nil && r.IsLeaderFor(types.NamespacedName{Namespace: r.Namespace, Name: event})
	})
	for _, name := range names {
		now, known := r.contentNow(ctx, name)
		if !known {
			return // the API server cannot tell: the next look asks again
		}
		for _, event := range r.held.saw(name, now) {
			r.wake(event, 0)
		}
	}
}

func (r *Reconciler) contentNow(ctx context.Context, name types.NamespacedName) (content, bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return contentOf(r.kube.Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{}))
}

// remember is called when a reconcile ends: it notes whether the event is held, and what an event that is not held any
// more means for the others.
func (w *work) remember() {
	login, needed := false, false
	for _, wait := range w.event.Status.Waits {
		needed = needed || wait.Class == fault.Operator.String()
		login = login || namesSecret(wait.Reason)
	}
	if !needed {
		others := w.r.held.free(w.event.Name)
		if w.client == nil {
			return // it ended without the Git service's help, which says nothing of the credentials
		}
		for _, other := range others { // mended elsewhere: at the Git service, for example
			w.r.held.retry(other)
			w.r.wake(other, 0)
		}
		return
	}
	if w.tried && w.r.held.hold(w.event.Name, w.saw, login, w.skipped) {
		w.r.wake(w.event.Name, 0)
	}
}

// repositoryChanged wakes the events that wait for an operator, who may have changed the Repository for that. What the
// global Repository says may hold any event.
func (r *Reconciler) repositoryChanged(before, after any) {
	was, _ := before.(*pacv1alpha1.Repository) // nil when it was created
	is, ok := after.(*pacv1alpha1.Repository)
	if !ok || was != nil && equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return
	}
	events, err := r.open.List(labels.Everything())
	if err != nil {
		return // a list of a cache has no error
	}
	global := is.Namespace == r.Namespace && is.Name == r.GlobalRepository
	for _, event := range events {
		ref := event.Spec.Repository
		if awaitsOperator(event) && (global || ref.Namespace == is.Namespace && ref.Name == is.Name) {
			r.held.retry(event.Name)
			r.wake(event.Name, 0)
		}
	}
}

func awaitsOperator(event *v1alpha1.GitEvent) bool {
	for _, wait := range event.Status.Waits {
		if wait.Class == fault.Operator.String() {
			return true
		}
	}
	return false
}
