// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// sources answer what a plan asks: the Git service, the cluster and the web.
func (w *work) sources(client *provider.Client) plan.Sources {
	return plan.Sources{
		Source: client, History: client, Access: client, Addresses: client, Web: w.r.Remote,
		Missing: w.missingAt, Comment: w.comment, Payload: w.body, Secret: w.readSecret,
	}
}

// missingAt returns 0 when what the Git service does not show is believed not to be there.
func (w *work) missingAt(address string) time.Duration {
	if w.r.misses.believed(w.event.Name+" "+address, w.r.clock.Now()) {
		return 0
	}
	return missApart
}

func (w *work) body(ctx context.Context) ([]byte, error) {
	return w.storedBlob(ctx, w.event.Spec.Payload)
}

// comment reads from the payload what a comment says: the record does not hold it.
func (w *work) comment(ctx context.Context) (string, error) {
	spec := &w.event.Spec
	payload, err := w.body(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the payload: %w", err)
	}
	header := http.Header{}
	for name, value := range spec.Headers {
		header.Set(name, value)
	}
	again, err := w.r.Providers[spec.Provider].Webhook.Decode(header, payload)
	if err != nil {
		return "", fault.Operatorf("BadPayload", "decoding the comment: %w", err)
	}
	if again.Comment == nil {
		return "", fault.Operatorf("BadPayload", "the payload of the comment has none for this version of Plumbline")
	}
	return again.Comment.Body, nil
}

// pin makes the commit that the plan was made for the event's: the head of a comment's pull request may have moved since.
func (w *work) pin() {
	if w.planned() && w.event.Spec.Comment != nil {
		w.event.Spec.SHA = w.event.Status.Plan.HeadSHA
	}
}
