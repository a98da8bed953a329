// SPDX-License-Identifier: Apache-2.0

package repositories_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	versioned "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

// A Repository gets the condition with its first problem. Each change is one write, and one
// Kubernetes Event if the reason changes.
func TestConditionIsWrittenOnce(t *testing.T) {
	client := versioned.NewSimpleClientset(&pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"},
	})
	events := record.NewFakeRecorder(10)
	c := repositories.Condition{
		Type: pacv1alpha1.RepositoryWebhook, Client: client.PipelinesascodeV1alpha1(), Recorder: events,
		Namespace: "plumbline",
	}
	name := types.NamespacedName{Namespace: "team", Name: "app"}
	for n, step := range []struct {
		state          repositories.State
		writes, events int
	}{
		{repositories.State{Status: corev1.ConditionTrue, Reason: "Called"}, 0, 0},
		{repositories.State{Status: corev1.ConditionFalse, Reason: "Paused", Message: "one"}, 1, 1},
		{repositories.State{Status: corev1.ConditionFalse, Reason: "Paused", Message: "one"}, 1, 1},
		{repositories.State{Status: corev1.ConditionFalse, Reason: "Paused", Message: "two"}, 2, 1},
		{repositories.State{Status: corev1.ConditionUnknown, Reason: "Denied", Message: "two"}, 3, 2},
		{repositories.State{Status: corev1.ConditionTrue, Reason: "Called"}, 4, 3},
		{repositories.State{Status: corev1.ConditionTrue, Reason: "Called"}, 4, 3},
	} {
		if err := c.Write(t.Context(), name, step.state); err != nil {
			t.Fatal(err)
		}
		writes := 0
		for _, a := range client.Actions() {
			if a.GetVerb() == "update" {
				writes++
			}
		}
		if got, want := fmt.Sprint(writes, len(events.Events)), fmt.Sprint(step.writes, step.events); got != want {
			t.Errorf("step %d: writes and Events are %s, want %s", n, got, want)
		}
	}
	if err := c.Write(t.Context(), types.NamespacedName{Namespace: "team", Name: "deleted"},
		repositories.State{}); err != nil {
		t.Errorf("a deleted Repository is an error: %v", err)
	}
}
