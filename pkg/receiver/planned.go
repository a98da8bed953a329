// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver/incomingwebhook"
)

// runName names a PipelineRun in an answer.
type runName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// targetOf returns where the Repository of a request is served. The Repository must own its URL,
// like that of a delivery.
func (h *Handler) targetOf(ctx context.Context, repository *pacv1alpha1.Repository) (*incomingwebhook.Target, *answer) {
	canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	if err != nil {
		return nil, rejected(http.StatusUnprocessableEntity, reasonBadRepositoryURL,
			"spec.url of the Repository: "+err.Error())
	}
	owner, err := h.Lookup.Find(ctx, canonical)
	switch {
	case fault.Is(err, fault.Ignored), err == nil && !same(owner, repository):
		return nil, rejected(http.StatusConflict, reasonNoRepository, "the Repository does not own the URL in its spec.url: "+
			"its conditions (kubectl describe repository) say why")
	case err != nil:
		return nil, notFound(err)
	}
	service, err := h.Services.Of(ctx, owner)
	if err != nil {
		return nil, unavailable("the Git service of the Repository is not known at the moment: "+
			"send the request again later, and look at the conditions of the Repository", err)
	}
	to := &incomingwebhook.Target{Repository: owner, Provider: git.GitHub}
	if named := owner.Spec.GitProvider; named != nil && named.Type != "" {
		to.Provider = named.Type
	}
	for i := range h.Providers {
		p := &h.Providers[i]
		if p.Name != to.Provider {
			continue
		}
		base := h.BaseURL(p.Name)
		if p.BaseURL != nil {
			base = p.BaseURL(service.URL, service.RepositoryURL, v1alpha1.Project{})
		}
		to.Host, to.Project = hostOf(canonical), provider.ProjectAt(base, canonical)
		return to, elsewhere(base, canonical, p.Name)
	}
	return nil, rejected(http.StatusUnprocessableEntity, reasonOtherHost,
		"git_provider.type of the Repository names a Git service that Plumbline does not serve")
}

func same(a, b *pacv1alpha1.Repository) bool { return a.Namespace == b.Namespace && a.Name == b.Name }

// elsewhere refuses a Repository that is not at the configured Git service.
func elsewhere(baseURL, canonical, service string) *answer {
	configured := hostOf(baseURL)
	if configured == "" {
		return unavailable("the configuration cannot be read at the moment: send the request again later",
			fault.Transientf(reasonNoConfiguration, "the URL of %s is not known yet", service))
	}
	if hostOf(canonical) == configured {
		return nil
	}
	return rejected(http.StatusUnprocessableEntity, reasonOtherHost, fmt.Sprintf(
		"the Repository is on another host than %s: set git_provider.type of the Repository to its Git service", configured))
}

// answerPlanned completes the answer to a recorded request with what its plan says, if the plan is
// made soon. Then it names the PipelineRuns, or says why nothing starts. The request is durable
// already, so every other outcome is an answer without names.
func (h *Handler) answerPlanned(ctx context.Context, a *answer) *answer {
	if a.event == "" {
		return a
	}
	a.message, a.shown = "accepted", a.event
	if h.Event == nil || !h.plans.tryAcquire() {
		return a
	}
	defer h.plans.release()
	ctx, cancel := context.WithTimeout(ctx, h.Timeout.Scale(planWait))
	defer cancel()
	for wait := firstPlanPoll; ; wait *= 2 {
		select {
		case <-ctx.Done():
			return a
		case <-time.After(wait):
		}
		event, err := h.Event(ctx, a.event)
		if fault.Gone(err) { // a settled event of long ago, whose tombstone has neither plan nor names
			return a
		}
		if err == nil && (event.Status.Plan.Decided() || event.Settled()) {
			return planned(a, event)
		}
	}
}

// planned returns the answer for an event whose plan is decided.
func planned(a *answer, event *v1alpha1.GitEvent) *answer {
	why := ""
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		if run.Refused == nil {
			a.runs = append(a.runs, runName{run.Namespace, run.Key()})
			continue
		}
		why = cmp.Or(why, run.Refused.Message)
	}
	if plan := event.Status.Plan; plan != nil {
		why = cmp.Or(why, plan.Message)
	}
	if len(a.runs) == 0 && why != "" {
		a.status, a.message = http.StatusUnprocessableEntity, cut(why)
	}
	return a
}

// tryAcquire takes a slot if one is free.
func (s semaphore) tryAcquire() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}
