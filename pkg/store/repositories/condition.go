// SPDX-License-Identifier: Apache-2.0

package repositories

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	typed "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// State is what a condition of a Repository is to say. Its message stays the same as long as the
// user has to do the same.
type State struct {
	Status          corev1.ConditionStatus
	Reason, Message string
}

// Condition writes one condition of Repositories. It does not add the condition to a Repository for
// which it would be true.
type Condition struct {
	Type     apis.ConditionType
	Client   typed.RepositoriesGetter
	Recorder record.EventRecorder
	// Namespace is Plumbline's own.
	Namespace string
}

// Current reports whether a Repository needs no write: it says so already, or another installation
// writes the condition.
func (c Condition) Current(repository *pacv1alpha1.Repository, s State) bool {
	if repository.By(c.Namespace).MustLeave(c.Type) {
		return true
	}
	is := repository.Status.GetCondition(c.Type)
	if s.Status == corev1.ConditionTrue {
		return is == nil || is.IsTrue()
	}
	return is != nil && is.Status == s.Status && is.Reason == s.Reason && is.Message == s.Message
}

// Write writes the condition of a Repository, unless it is current or the Repository is deleted.
// Another reason gets a Kubernetes Event.
func (c Condition) Write(ctx context.Context, name types.NamespacedName, s State) error {
	client := c.Client.Repositories(name.Namespace)
	repository, err := client.Get(ctx, name.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("reading Repository %s: %w", name, err))
	}
	if c.Current(repository, s) {
		return nil
	}
	was, by := repository.Status.GetCondition(c.Type), repository.By(c.Namespace)
	kind := corev1.EventTypeNormal
	switch s.Status {
	case corev1.ConditionTrue:
		by.MarkTrue(c.Type, s.Reason, s.Message)
	case corev1.ConditionFalse:
		kind = corev1.EventTypeWarning
		by.MarkFalse(c.Type, s.Reason, s.Message)
	default:
		by.MarkUnknown(c.Type, s.Reason, s.Message)
	}
	if _, err := client.UpdateStatus(ctx, repository, metav1.UpdateOptions{}); err != nil { // a conflict, too
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("writing the status of Repository %s: %w", name, err))
	}
	if was == nil || was.Reason != s.Reason {
		c.Recorder.Event(repository, kind, s.Reason, s.Message)
	}
	return nil
}
