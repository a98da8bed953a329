// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// sync updates the cache.
func (e *env) sync() *pacv1alpha1.Repository {
	e.Helper()
	live, err := e.client.PipelinesascodeV1alpha1().Repositories("team").Get(context.Background(), "app",
		metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	e.add(e.repos, live)
	return live
}

// wantCondition checks status and reason, and returns the message; "" is no condition.
func (e *env) wantCondition(want string) string {
	e.Helper()
	is := e.sync().Status.GetCondition(pacv1alpha1.RepositoryWebhook)
	if is == nil {
		if want != "" {
			e.Errorf("no condition, want %s", want)
		}
		return ""
	}
	if got := fmt.Sprintf("%s %s", is.Status, is.Reason); got != want {
		e.Errorf("the condition is %s, want %s", got, want)
	}
	return is.Message
}

// statusWrites counts the updates of the status.
func (e *env) statusWrites() (n int) {
	for _, a := range e.client.Actions() {
		if a.GetVerb() == "update" {
			n++
		}
	}
	return n
}

func (e *env) wantOnce(guids ...string) {
	e.Helper()
	for _, guid := range guids {
		if e.recorded[guid] != 1 {
			e.Errorf("%s is recorded %d times", guid, e.recorded[guid])
		}
	}
}
