// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// asks answers what the plan of one event asks.
type asks struct {
	step *Step
	a    *attempt.Attempt
}

// sources are the Git service, the cluster and the web.
func (s *Step) sources(a *attempt.Attempt, client *provider.Client, who *Access) plan.Sources {
	q := asks{s, a}
	return plan.Sources{
		Source: client, History: client, Addresses: client, Web: s.Web,
		Access: who, Missing: q.missing, Secret: q.secret,
		Budget: plan.Budget{Reserve: q.hold, Pause: a.Kept.Rest},
		Delivery: plan.Delivery{
			Comment: q.comment, Actor: q.actor, Payload: q.body, Records: q.records,
			Past: plan.Past{
				WaitForOthers: q.first, RecordsOf: q.recordsOf, RecordSubject: a.Kept.About, Cancels: q.cancels,
				Now: a.Clock.Now, Outdate: q.outdate,
			},
		},
	}
}

// access asks who may do what.
func (s *Step) access(a *attempt.Attempt, client *provider.Client) *Access {
	return &Access{
		Service: client,
		Denials: &s.Denials,
		Spec:    &a.Event.Spec,
		Asked:   v1alpha1.Reopened(a.Event.Name),
		Now:     a.Clock.Now,
		Tell:    a.Waits.Tell,
	}
}

// missing returns 0 when what the Git service does not show is believed not to be there.
func (q asks) missing(address string) time.Duration {
	if q.step.Misses.believed(q.a.Event.Name+" "+address, q.a.Clock.Now()) {
		return 0
	}
	return MissApart
}

// hold takes the memory for definitions and manifests of so many bytes, until the attempt is over.
func (q asks) hold(definitions, manifests int) error {
	return q.a.Kept.Hold(plan.Definitions, leastHeld+heldPerByte*definitions+manifests)
}

// records are what was recorded of the same pull request or commit.
func (q asks) records(ctx context.Context) ([]history.Record, error) {
	return q.recordsOf(ctx, q.a.Event.Spec.Subjects())
}

// recordsOf are those of any pull request or commit.
func (q asks) recordsOf(ctx context.Context, subject string) ([]history.Record, error) {
	hold := func(bytes int) error { return q.a.Kept.Hold("records", bytes) }
	all, err := history.List(ctx, q.step.Events, subject, hold)
	if fault.Is(err, fault.Ignored) { // there are too many: what would be decided by some of them may be wrong
		return nil, &plan.IgnoredError{Why: fault.Of(err)}
	}
	return slices.DeleteFunc(all, func(r history.Record) bool { return r.Event.Name == q.a.Event.Name }), err
}

// cancels reports what a cancellation would end now.
func (q asks) cancels(ctx context.Context, spec *v1alpha1.GitEventSpec, c *v1alpha1.Cancellation) (
	something, running bool, err error,
) {
	return q.step.Closings.Finds(ctx, q.a.Event.Name, spec, c)
}

// first keeps two events from deciding by what has run at the same moment.
func (q asks) first(ctx context.Context, subject string) error {
	return history.First(ctx, q.step.Events, q.a.Event, subject, q.a.Clock.Now())
}

// outdate makes another event decide again, and annotates it with notes.
func (q asks) outdate(ctx context.Context, record history.Record, notes map[string]string) error {
	return history.Outdate(ctx, q.step.Events, record.Event, notes)
}

func (q asks) body(ctx context.Context) ([]byte, error) {
	return q.a.Kept.Payload(ctx)
}

// comment reads from the payload what a comment says: the record does not hold it.
func (q asks) comment(ctx context.Context) (string, error) {
	again, err := q.decoded(ctx)
	if err != nil {
		return "", err
	}
	if again.Comment == nil {
		return "", fault.Operatorf("BadPayload", "the payload of the comment has none for this version of Plumbline")
	}
	return again.Comment.Body, nil
}

// actor reads from the payload who caused an event that a version before has recorded.
func (q asks) actor(ctx context.Context) (string, error) {
	again, err := q.decoded(ctx)
	if err != nil {
		return "", err
	}
	return again.Actor, nil
}

// decoded is the event as this version reads its payload.
func (q asks) decoded(ctx context.Context) (*v1alpha1.GitEventSpec, error) {
	spec := &q.a.Event.Spec
	payload, err := q.body(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the payload: %w", err)
	}
	header := http.Header{}
	for name, value := range spec.Headers {
		header.Set(name, value)
	}
	again, err := q.step.Providers[spec.Provider].Webhook.Decode(header, payload)
	if err != nil {
		return nil, fault.Operatorf("BadPayload", "decoding the payload again: %w", err)
	}
	return again, nil
}

// secret reads a value that a custom param refers to.
func (q asks) secret(ctx context.Context, ref template.SecretRef) (string, error) {
	namespace := q.a.Event.Spec.Repository.Namespace
	secret, err := q.a.Git.Secret(ctx, namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return "", fault.Operatorf(
			fault.ReasonSecretMissing,
			"a custom param needs secret %s/%s, which does not exist: create it with the key %s",
			namespace,
			ref.Name,
			ref.Key,
		)
	}
	if err != nil {
		return "", fault.FromKube(
			fault.VerbRead,
			fmt.Errorf("reading secret %s/%s for a custom param: %w", namespace, ref.Name, err),
		)
	}
	value, found := secret.Data[ref.Key]
	if !found {
		return "", fault.Operatorf(
			fault.ReasonSecretMissing,
			"a custom param needs the key %s of secret %s/%s, which has no such key",
			ref.Key,
			namespace,
			ref.Name,
		)
	}
	return string(value), nil
}
