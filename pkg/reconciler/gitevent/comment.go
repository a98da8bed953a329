// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"net/http"

	"github.com/plumbline-ci/plumbline/pkg/access"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// complete asks for what the delivery of a comment did not say. The head may have moved since the plan was begun: what is
// planned at is what counts.
func (w *work) complete(ctx context.Context, client *provider.Client) error {
	if w.event.Spec.Comment == nil {
		return nil
	}
	spec, err := client.Complete(ctx, &w.event.Spec)
	if err != nil {
		return err
	}
	w.event.Spec = *spec
	w.pin()
	return nil
}

// pin makes the commit that the plan was made for the event's.
func (w *work) pin() {
	if w.planned() && w.event.Spec.Comment != nil {
		w.event.Spec.SHA = w.event.Status.Plan.HeadSHA
	}
}

// hear reads from the payload what a comment says: the record does not hold it.
func (w *work) hear(ctx context.Context) error {
	spec := &w.event.Spec
	if spec.Comment == nil {
		return nil
	}
	payload, err := w.storedBlob(ctx, spec.Payload)
	if err != nil {
		return fmt.Errorf("reading the payload: %w", err)
	}
	header := http.Header{}
	for name, value := range spec.Headers {
		header.Set(name, value)
	}
	again, err := w.r.Providers[spec.Provider].Webhook.Decode(header, payload)
	if err != nil {
		return fault.Operatorf("BadPayload", "decoding the comment: %w", err)
	}
	if again.Comment == nil {
		return fault.Operatorf("BadPayload", "the payload of the comment has none for this version of Plumbline")
	}
	spec.Comment.Body = again.Comment.Body
	return nil
}

// decide asks who may start the event, and the Git service only for what the answer depends on, about each account once.
// An error is never an answer.
func decide(ctx context.Context, client *provider.Client, spec *v1alpha1.GitEventSpec) (access.Decision, string, error) {
	in := access.Input{Trigger: spec.Trigger, Comment: spec.Comment != nil}
	if spec.PullRequest != nil {
		in.SameRepository = spec.PullRequest.HeadProjectID == spec.Project.ID && spec.Project.ID != 0
	}
	known := map[string]*bool{}
	for {
		decision, why := access.Decide(in)
		var user string
		var answer **bool
		switch {
		case decision == access.NeedsCommenterAccess:
			user, answer = spec.Sender, &in.CommenterCanWrite
		case decision == access.NeedsWriteAccess && spec.PullRequest != nil:
			user, answer = spec.PullRequest.Author, &in.CanWrite
		case decision == access.NeedsWriteAccess:
			return access.Unapproved, why, nil
		default:
			return decision, why, nil
		}
		if known[user] == nil {
			canWrite, err := client.CanWrite(ctx, user)
			if err != nil {
				return access.Unapproved, "", fmt.Errorf("asking for the access of %s: %w", user, err)
			}
			known[user] = &canWrite
		}
		*answer = known[user]
	}
}
