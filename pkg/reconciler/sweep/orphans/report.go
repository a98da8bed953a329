// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Report reports the recorded ends of the checks that a settled event has left open: its problem
// may be fixed by now. It needs no PipelineRun, which may be deleted or was never created. It calls
// may before it calls a Git service for a namespace. The error says why some checks are still open.
// Another attempt within the hour does nothing.
func (c *Closer) Report(
	ctx context.Context, object *metav1.PartialObjectMetadata, may func(namespace string) bool,
) error {
	event, err := c.givenUp(ctx, object)
	if event == nil || err != nil {
		return err
	}
	service, known := provider.For(c.Providers, &event.Spec)
	namespace := event.Spec.Repository.Namespace
	if !known || c.backsOff(ofNamespace(namespace)) || c.backsOff(ofRepository(event)) || !may(namespace) {
		return nil
	}
	c.backOff(string(event.UID), retryAtMost)
	left := len(event.Status.Checks)
	wrong := c.reportOpen(ctx, event, service)
	if wrong != nil {
		c.failedFor(string(event.UID), event, fault.Of(wrong).Reason)
		wrong = fmt.Errorf("reporting what GitEvent %s has given up: %w", event.Name, wrong)
	}
	if len(event.Status.Checks) == left {
		return wrong
	}
	c.failed.Delete(string(event.UID)) // the next pass goes on here
	if wrong == nil {
		event.Status.Unreported = false
		event.MarkTrue(v1alpha1.GitEventReported, "", "")
		event.Status.Outcome = status.Summary(&event.Status)
	}
	// Without this write it is reported again, which changes nothing.
	_, err = c.Events.UpdateStatus(ctx, event, metav1.UpdateOptions{})
	return errors.Join(wrong, kube("recording what is reported of GitEvent "+event.Name, err))
}

// givenUp reads an event; nil if it is backed off, or has nothing left to report.
func (c *Closer) givenUp(ctx context.Context, object *metav1.PartialObjectMetadata) (*v1alpha1.GitEvent, error) {
	if c.backsOff(string(object.UID)) {
		return nil, nil
	}
	event, err := c.Events.Get(ctx, object.Name, metav1.GetOptions{})
	if err != nil {
		return nil, unlessGone("reading GitEvent "+object.Name, err)
	}
	if !event.Settled() || !event.Status.Unreported || event.Status.Plan == nil {
		return nil, nil
	}
	return event, nil
}

// reportOpen reports the checks that the event has left open, and removes those from it that are
// reported. One that the service refuses does not delay the others.
func (c *Closer) reportOpen(ctx context.Context, event *v1alpha1.GitEvent, service provider.Provider) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	session := c.Credentials.Begin(event, config.FromContext(ctx))
	defer session.End(false, false)
	client, err := session.Connect(limited)
	if err != nil {
		return err
	}
	var refused error
	for _, check := range desired(ctx, event) {
		at := slices.IndexFunc(event.Status.Checks, func(open v1alpha1.Check) bool { return open.Key == check.Key })
		if at < 0 || check.Conclusion == "" {
			continue
		}
		check.OnlyOpen = true
		id, err := client.Put(limited, headOf(event), event.Status.Checks[at].ID, check, false)
		if fault.Rejected(err) {
			refused = cmp.Or(refused, err)
			continue
		}
		if err != nil {
			return err
		}
		event.Status.Checks = slices.Delete(event.Status.Checks, at, at+1)
		c.labelRun(limited, service, event, check.Key, id)
	}
	if refused == nil {
		event.Status.Checks = nil // a check that is of no run has no end
	}
	return refused
}

// labelRun labels the PipelineRun of a check. Without the label, which may be refused, the sweep
// looks up the run's event in each pass.
func (c *Closer) labelRun(ctx context.Context, service provider.Provider, event *v1alpha1.GitEvent, name, id string) {
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		if run.Key() != name || run.UID == "" {
			continue
		}
		if err := c.label(ctx, service, run, id); err != nil {
			logging.FromContext(ctx).
				Warnw("A PipelineRun is not labelled as reported", "namespace", run.Namespace, "run", run.Name, "error", err)
		}
	}
}

// report reports the end of the event's one run at the Git service. With onlyOpen it changes open
// checks only, because earlier reports are not known. The id is of the run's check, if it is known;
// report returns what it is then.
func (c *Closer) report(ctx context.Context, event *v1alpha1.GitEvent, id string, onlyOpen bool) (string, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	session := c.Credentials.Begin(event, config.FromContext(ctx))
	defer session.End(false, false)
	client, err := session.Connect(limited)
	if err != nil {
		return "", err
	}
	for _, check := range desired(ctx, event) {
		of := check.Key == event.Status.Runs[0].Key()
		check.OnlyOpen = onlyOpen || !of // other checks may not exist, or may have ended
		known := ""
		if of {
			known = id
		}
		got, err := client.Put(limited, headOf(event), known, check, false)
		if err != nil {
			return "", err
		}
		if of {
			id = got
		}
	}
	return id, nil
}

func desired(ctx context.Context, event *v1alpha1.GitEvent) []status.Check {
	settings := config.FromContext(ctx)
	in := status.Input{Application: settings.ApplicationName, Event: event}
	for _, run := range event.Status.Runs {
		in.Runs = append(in.Runs, status.RunState{Run: run, Links: settings.Console.Links(run)})
	}
	return status.Desired(in)
}

func headOf(event *v1alpha1.GitEvent) git.Head {
	spec, sha, ref := &event.Spec, event.Spec.SHA, event.Spec.HeadRef
	if plan := event.Status.Plan; plan != nil {
		sha, ref = plan.HeadSHA, cmp.Or(plan.Ref, ref)
	}
	return git.Head{SHA: sha, Project: spec.Project, Ref: ref, PullRequest: spec.PullRequest}
}
