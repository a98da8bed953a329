// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/annotate"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/cancel"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/clients"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/create"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/observe"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/renew"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/report"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/settle"
)

// Steps are the steps of an event. None of them imports another.
type Steps struct {
	Plan     *planning.Step
	Create   *create.Step
	Observe  *observe.Step
	Cancel   *cancel.Step
	Report   *report.Step
	Renew    *renew.Step
	Annotate *annotate.Step
	Settle   *settle.Step
}

// New gives each step what it asks.
func NewSteps(c clients.Cluster, o clients.Options, m *metrics.Metrics) *Steps {
	leads := &settle.Leadership{}
	secrets := gitauth.New(c.Kube)
	owners := &claim.Keeper{
		Cached:       c.Claims.RepositoryClaims(o.Namespace),
		Claims:       c.Plumbline.RepositoryClaims(o.Namespace),
		Repositories: c.PaC,
	}
	ends := cancel.New(c, o)
	annotations := &annotate.Step{Tekton: c.Tekton, Providers: o.Providers, Metrics: m}
	ending := settle.New(c, secrets, m, leads)
	ending.Unpatched = annotations.Unpatched
	return &Steps{
		Plan: &planning.Step{
			Providers:     o.Providers,
			Web:           o.Remote,
			Events:        c.Plumbline.GitEvents(o.Namespace),
			Version:       o.Version,
			Owners:        owners,
			Repositories:  c.PaC,
			Metrics:       m,
			NotFound:      &planning.NotFound{},
			CrashLoop:     &planning.CrashLoopGuard{Inherited: leads.Inherited},
			Cancellations: ends,
		},
		Create:  create.New(c, o, secrets, m),
		Observe: &observe.Step{Tekton: c.Tekton, Runs: c.Runs, Deleted: observe.NewDeletedRuns()},
		Cancel:  ends,
		Report: &report.Step{
			Providers: o.Providers,
			Metrics:   m,
			Identity:  o.Identity,
			Late:      o.Times.LateReports,
			Events:    c.Plumbline.GitEvents(o.Namespace),
		},
		Renew:    &renew.Step{GitAuth: secrets},
		Annotate: annotations,
		Settle:   ending,
	}
}
