// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/authz/scope"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/annotate"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/cancel"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/create"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/observe"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/prune"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/renew"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/report"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/settle"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/steplogs"
)

// Steps are the steps of an event. None of them imports another.
type Steps struct {
	Plan     *planning.Step
	Create   *create.Step
	Observe  *observe.Step
	Logs     *steplogs.Step
	Cancel   *cancel.Step
	Report   *report.Step
	Renew    *renew.Step
	Annotate *annotate.Step
	Settle   *settle.Step
}

// shared is what several steps are made with.
type shared struct {
	metrics    *metrics.Metrics
	leadership *settle.Leadership
	wake       func(event string, after time.Duration)
	inherited  func(*v1alpha1.GitEvent) bool // whether another process may have worked on an event
}

// newSteps returns the steps of an installation.
func newSteps(c deps.Cluster, o deps.Options, with shared) *Steps {
	events := c.Plumbline.GitEvents(o.Namespace)
	others := scope.Resolver{Claims: c.Claims.RepositoryClaims(o.Namespace), Repositories: c.Repositories}
	secrets := gitauth.New(c.Kube, others)
	owners := &claim.Checker{
		Cached:       c.Claims.RepositoryClaims(o.Namespace),
		Claims:       c.Plumbline.RepositoryClaims(o.Namespace),
		Repositories: c.PaC,
	}
	cancels := cancel.New(c, o)
	logs := &steplogs.Step{
		Reader: &steplogs.Reader{Tekton: c.Tekton, Kube: c.Kube.Logs}, Wake: with.wake, Providers: o.Providers,
	}
	annotations := &annotate.Step{Tekton: c.Tekton, Providers: o.Providers, Metrics: with.metrics}
	return &Steps{
		Plan: &planning.Step{
			Providers:     o.Providers,
			Web:           o.Remote,
			Events:        events,
			Tekton:        c.Tekton,
			Version:       o.Version,
			Owners:        owners,
			Readable:      secrets.Readable,
			Repositories:  c.PaC,
			Metrics:       with.metrics,
			NotFound:      &planning.NotFound{},
			CrashLoop:     &planning.CrashLoopGuard{Inherited: with.inherited},
			Cancellations: cancels,
		},
		Create: create.New(c, o, secrets, with.metrics),
		Observe: &observe.Step{
			Tekton: c.Tekton, Pods: c.Kube, Runs: c.Runs, Deleted: observe.NewDeletedRuns(), Logs: logs.Wanted,
			Metrics: with.metrics,
		},
		Logs:   logs,
		Cancel: cancels,
		Report: &report.Step{
			Providers: o.Providers,
			Metrics:   with.metrics,
			Identity:  o.Identity,
			Late:      o.Times.LateReports,
			Pending:   report.NewPendingLimiter(with.wake),
			Events:    events,
		},
		Renew:    &renew.Step{GitAuth: secrets},
		Annotate: annotations,
		Settle: &settle.Step{
			GitAuth:    secrets,
			Prune:      prune.New(c),
			Metrics:    with.metrics,
			Leadership: with.leadership,
			Unpatched:  annotations.Unpatched,
		},
	}
}
