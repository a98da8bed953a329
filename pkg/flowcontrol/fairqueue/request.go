// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Request says for whom slots are needed.
type Request struct {
	// Event is the name of the event, which is woken.
	Event string
	// Namespace is that of the event's Repository.
	Namespace string
	// Host is the Git service's, e.g. "github.com".
	Host string
	// Installation is that of the GitHub App, 0 if there is none.
	Installation int64
	// PullsOf is the Repository if the event is of a pull request, else "".
	PullsOf string
	// Renews says that a token that a run uses is to be renewed. Such an event is woken before all
	// others of its installation: a check can wait, a token expires.
	Renews bool
}

// RequestOf returns the request of an event. The event may be as a cache has it, trimmed.
func RequestOf(event *v1alpha1.GitEvent, now time.Time) Request {
	spec := &event.Spec
	r := Request{
		Event:        event.Name,
		Namespace:    spec.Repository.Namespace,
		Host:         spec.Host,
		Installation: spec.InstallationID,
		Renews: slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool {
			return run.Secret != "" && run.Result == nil && run.SecretRenewAt != nil && !now.Before(run.SecretRenewAt.Time)
		}),
	}
	if spec.Trigger == v1alpha1.TriggerPullRequest {
		r.PullsOf = spec.Repository.Name
	}
	return r
}
