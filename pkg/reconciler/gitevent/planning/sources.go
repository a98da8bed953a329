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

// answers answers the questions of the plan of one event.
type answers struct {
	step *Step
	a    *attempt.Attempt
}

// addresses reads web addresses with the event's credentials, and with those of others. It calls
// others, which may be nil, when the first address is read.
type addresses struct {
	client *provider.Client
	others func() ([]v1alpha1.Project, error)
}

// FileAt implements references.Addresses.
func (s addresses) FileAt(ctx context.Context, address string) ([]byte, error) {
	if s.others == nil {
		return s.client.FileAt(ctx, address)
	}
	others, err := s.others()
	if err != nil {
		return nil, err
	}
	return s.client.FileAt(ctx, address, others...)
}

// sources returns the Git service, the cluster and the web as the plan needs them.
func (s *Step) sources(a *attempt.Attempt, client *provider.Client, who *Access) plan.Sources {
	q := answers{s, a}
	return plan.Sources{
		Source:  client,
		History: client,
		Remote:  plan.Remote{Addresses: addresses{client, nil}, Web: s.Web, Missing: q.missing},
		Access:  who,
		Secret:  q.secret,
		Budget:  plan.Budget{Reserve: q.hold, Pause: a.StoredPlan.Throttle},
		Delivery: plan.Delivery{
			Comment: q.comment, Actor: q.actor, Payload: a.StoredPlan.Payload, Records: q.records,
			Explain: q.explain,
			Past: plan.Past{
				WaitForOthers: q.first, RecordsOf: q.recordsOf, RecordSubject: a.StoredPlan.SetSubject, Cancels: q.cancels,
				PaCRuns: q.pacRuns, Now: a.Clock.Now, Outdate: q.outdate,
			},
		},
	}
}

// access returns what asks the Git service for permissions.
func (s *Step) access(a *attempt.Attempt, client *provider.Client) *Access {
	return &Access{
		Service: client,
		Denials: &s.Denials,
		Spec:    &a.Event.Spec,
		Asked:   v1alpha1.Reopened(a.Event.Name),
		Now:     a.Clock.Now,
		Tell:    a.Waits.WarningEvent,
	}
}

// missing returns when to read something again that the Git service does not show; 0 if it is
// missing for good.
func (q answers) missing(address string) time.Duration {
	if q.step.NotFound.confirmed(q.a.Event.Name+" "+address, q.a.Clock.Now()) {
		return 0
	}
	return NotFoundInterval
}

// hold reserves the memory for definitions and manifests of this size, until the attempt is
// released.
func (q answers) hold(definitions, manifests int) error {
	return q.a.StoredPlan.Reserve(plan.Definitions, minMemory+memoryPerByte*definitions+manifests)
}

// records returns what was recorded of the same pull request or commit.
func (q answers) records(ctx context.Context) ([]history.Record, error) {
	return q.recordsOf(ctx, q.a.Event.Spec.Subjects())
}

// recordsOf returns what was recorded of any pull request or commit.
func (q answers) recordsOf(ctx context.Context, subject string) ([]history.Record, error) {
	hold := func(bytes int) error { return q.a.StoredPlan.Reserve("records", bytes) }
	all, err := history.List(ctx, q.step.Events, subject, hold)
	if fault.Is(err, fault.Ignored) { // there are too many, and a decision by some of them may be wrong
		return nil, &plan.IgnoredError{Why: fault.Of(err)}
	}
	return slices.DeleteFunc(all, func(r history.Record) bool { return r.Event.Name == q.a.Event.Name }), err
}

// explain returns what became of the pipelines of a commit.
func (q answers) explain(ctx context.Context, sha string, names []string) ([]v1alpha1.Decision, error) {
	return q.a.Explain(ctx, q.step.Events, sha, names)
}

// cancels reports what a cancellation would stop now.
func (q answers) cancels(ctx context.Context, spec *v1alpha1.GitEventSpec, c *v1alpha1.Cancellation) (
	something, running bool, err error,
) {
	return q.step.Cancellations.Finds(ctx, q.a.Event.Name, spec, c)
}

// pacRuns reads PipelineRuns of Pipelines-as-Code in the Repository's namespace.
func (q answers) pacRuns(ctx context.Context, of history.PaCRunsOf) ([]history.PaCRun, error) {
	return history.OfPaC(ctx, q.step.Tekton.PipelineRuns(q.a.Event.Spec.Repository.Namespace), of)
}

// first keeps two events from deciding at the same moment by what has run.
func (q answers) first(ctx context.Context, subject string) error {
	return history.First(ctx, q.step.Events, q.a.Event, subject, q.a.Clock.Now())
}

// outdate makes another event decide again, and annotates it with notes.
func (q answers) outdate(ctx context.Context, record history.Record, notes map[string]string) error {
	return history.Outdate(ctx, q.step.Events, record.Event, notes)
}

// comment reads the text of a comment from the payload; the record does not have it.
func (q answers) comment(ctx context.Context) (string, error) {
	again, err := q.decoded(ctx)
	if err != nil {
		return "", err
	}
	if again.Comment == nil {
		return "", fault.Operatorf(reasonBadPayload, "the payload of the comment has none for this version of Plumbline")
	}
	return again.Comment.Body, nil
}

// actor reads from the payload who caused an event that an older version has recorded.
func (q answers) actor(ctx context.Context) (string, error) {
	again, err := q.decoded(ctx)
	if err != nil {
		return "", err
	}
	return again.Actor, nil
}

// decoded returns the event as this version decodes its payload.
func (q answers) decoded(ctx context.Context) (*v1alpha1.GitEventSpec, error) {
	spec := &q.a.Event.Spec
	payload, err := q.a.StoredPlan.Payload(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the payload: %w", err)
	}
	header := http.Header{}
	for name, value := range spec.Headers {
		header.Set(name, value)
	}
	again, err := q.step.Providers[spec.Provider].Webhook.Decode(header, payload)
	if err != nil {
		return nil, fault.Operatorf(reasonBadPayload, "decoding the payload again: %w", err)
	}
	return again, nil
}

// secret reads the value that a custom param refers to.
func (q answers) secret(ctx context.Context, ref template.SecretRef) (string, error) {
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
