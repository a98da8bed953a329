// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/scope"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/command"
)

// The reasons of the conditions URL, Credentials and Settings that this package sets. Credentials
// also has the reasons of events.
const (
	reasonOwned      = "Owned"
	reasonGlobal     = "Global"
	reasonClaimed    = "Claimed"
	reasonInvalidURL = "InvalidURL"
	reasonNoProblem  = "NoProblem"
	reasonDenies     = "NotEvaluated"
	reasonNotActedOn = "NotActedOn"
	reasonFree       = "Free"
)

// syncWait is how long a Repository waits for the cache of events at the start.
const syncWait = time.Second

// markURL claims the URL and says in the condition who owns it.
func (r *Reconciler) markURL(
	ctx context.Context, repository *pacv1alpha1.Repository, canonical string, invalid error,
) error {
	if invalid != nil && r.isGlobal(repository) {
		return nil
	}
	if invalid != nil {
		repository.By(r.namespace).MarkFalse(pacv1alpha1.RepositoryURL, fault.Of(invalid).Reason, invalid.Error())
		return nil // a change of the Repository or of the configuration wakes this key
	}
	if canonical == "" {
		repository.By(r.namespace).
			MarkTrue(pacv1alpha1.RepositoryURL, reasonGlobal, "The Repository of Plumbline's own namespace serves no URL.")
		return nil
	}
	claim, err := r.claim(ctx, repository, canonical)
	if err != nil {
		if f := fault.Of(err); f.Class == fault.Operator {
			repository.By(r.namespace).MarkFalse(pacv1alpha1.RepositoryURL, f.Reason, f.Advice())
		}
		return err
	}
	if ownerOf(claim) != keyOf(repository) {
		repository.By(r.namespace).MarkFalse(pacv1alpha1.RepositoryURL, reasonClaimed, claimedMessage(claim))
		return nil // a change of the claim wakes this key
	}
	r.markOwned(repository, claim)
	return r.clearUnproven(ctx, claim)
}

// isGlobal reports whether a Repository without a URL is the global one of another installation.
func (r *Reconciler) isGlobal(repository *pacv1alpha1.Repository) bool {
	is := repository.Status.GetCondition(pacv1alpha1.RepositoryURL)
	return repository.Spec.URL == "" && is.IsTrue() && is.Reason == reasonGlobal
}

// claimedMessage names the owner, whom the user has to contact, and nothing else of another tenant.
func claimedMessage(claim *v1alpha1.RepositoryClaim) string {
	if claim.Status.ReleasedAt == nil {
		return fmt.Sprintf(
			"%s belongs to Repository %s, so its events are not served here. Delete one of the two Repositories.",
			claim.Spec.URL, ownerOf(claim),
		)
	}
	return fmt.Sprintf(
		"%s belonged to Repository %s and is kept for it for a day. It is taken over then; to have it at once, ask an administrator to delete RepositoryClaim %s/%s.",
		claim.Spec.URL, ownerOf(claim), claim.Namespace, claim.Name,
	)
}

// markSettings names the fields that are set and have no effect, the one that denies events first.
// A Repository without such a field has no such condition, unless it had one before.
func (r *Reconciler) markSettings(repository *pacv1alpha1.Repository) {
	denies, kept := repository.Spec.Restricts(), repository.Spec.IgnoredFields()
	message := ""
	if len(kept) > 0 {
		message = "This version of Plumbline ignores these fields: " + strings.Join(kept, ", ") + "."
	}
	wrong, invalid := r.wrongSettings(repository)
	message = strings.TrimSpace(wrong + " " + message)
	switch {
	case denies != "":
		repository.By(r.namespace).
			MarkFalse(pacv1alpha1.RepositorySettings, reasonDenies, strings.TrimSpace(fmt.Sprintf("%s restricts who may start runs, and this version "+
				"cannot evaluate it: no pull request or merge request starts a run. Remove the field to let every account with write access start runs. %s", denies, message)))
	case invalid != nil:
		repository.By(r.namespace).MarkFalse(pacv1alpha1.RepositorySettings, fault.Of(invalid).Reason, message)
	case message != "":
		repository.By(r.namespace).MarkFalse(pacv1alpha1.RepositorySettings, reasonNotActedOn, message)
	case repository.Status.GetCondition(pacv1alpha1.RepositorySettings) != nil:
		repository.By(r.namespace).
			MarkTrue(pacv1alpha1.RepositorySettings, reasonNoProblem, "All fields that are set are acted on.")
	}
}

// wrongSettings returns a message about all invalid settings, and the error of the first one; nil
// if all are valid.
func (r *Reconciler) wrongSettings(repository *pacv1alpha1.Repository) (message string, invalid error) {
	settings := repository.Spec.Settings
	if settings == nil {
		return "", nil
	}
	var all []string
	if _, err := command.Prefix(settings.GitOpsCommandPrefix); err != nil {
		invalid = err
		all = append(all,
			fmt.Sprintf("settings.gitops_command_prefix: %s. Until it is fixed no comment is a command.", err.Error()))
	}
	if err := r.scopeRefused(&repository.Spec); err != nil {
		invalid = cmp.Or(invalid, err)
		all = append(all, err.Error()+". Until then, runs of the repository's own code wait.")
	}
	if settings.QueuePriority == "" {
		return strings.Join(all, " "), invalid
	}
	params := repository.Spec.Params
	if global := r.globalSpec(); params == nil && global != nil {
		params = global.Params
	}
	var names []string
	if params != nil {
		for _, param := range *params {
			names = append(names, param.Name)
		}
	}
	if err := r.priorities.check(keyOf(repository), settings.QueuePriority, names); err != nil {
		invalid = cmp.Or(invalid, err)
		all = append(all,
			fmt.Sprintf("settings.queue_priority: %s. Until it is fixed all events have priority 0.", err.Error()))
	}
	return strings.Join(all, " "), invalid
}

// scopeRefused returns an error if the Repository lists other repositories and may not.
func (r *Reconciler) scopeRefused(spec *pacv1alpha1.RepositorySpec) error {
	if len(spec.Settings.GithubAppTokenScopeRepos) == 0 || spec.FixedToken() != "" ||
		!r.settings.Load().TokenScope.RefusesLists() {
		return nil
	}
	return scope.Refused()
}

// markBudget says that deliveries are refused because open events have exhausted a budget. The
// message has no number that changes with each event, and a budget counts as free when a quarter of
// it is. So the status is written twice, however many deliveries arrive.
func (r *Reconciler) markBudget(repository *pacv1alpha1.Repository) {
	if !r.eventsSynced() {
		return // markCredentials says so
	}
	scope, full := r.budget.Full(keyOf(repository))
	switch {
	case full:
		repository.By(r.namespace).
			MarkFalse(pacv1alpha1.RepositoryBudget, scope.Reason(), fmt.Sprintf("The unsettled events of %s have reached their limit of %s, so new deliveries are answered 503. "+
				"Fix what the events wait for: see the condition Credentials and kubectl -n %s get gitevents. Then have the Git service send the deliveries again.",
				scope, r.budget.Limits(scope), r.namespace))
	case repository.Status.GetCondition(pacv1alpha1.RepositoryBudget) != nil:
		repository.By(r.namespace).MarkTrue(pacv1alpha1.RepositoryBudget, reasonFree, "New deliveries are recorded.")
	}
}

// problem is what an operator has to do for an event.
type problem struct {
	v1alpha1.Wait
	event string
}

// markCredentials says what the newest problem of the Repository's open events is.
func (r *Reconciler) markCredentials(repository *pacv1alpha1.Repository) error {
	if !r.eventsSynced() {
		return fault.Throttledf(reasonCacheNotSynced, syncWait, "the open events are not known yet")
	}
	if worst := newest(r.openEvents(repository.Namespace, repository.Name)...); worst != nil {
		repository.By(r.namespace).MarkFalse(pacv1alpha1.RepositoryCredentials, worst.Reason, worst.Message)
		return nil
	}
	repository.By(r.namespace).
		MarkTrue(pacv1alpha1.RepositoryCredentials, reasonNoProblem, "No open event waits for an operator.")
	return nil
}

// newest returns the problem that arose last; nil if there is none. Ties are broken by names, so
// that all processes agree.
func newest(events ...*v1alpha1.GitEvent) *problem {
	var all []problem
	for _, event := range events {
		if event == nil || event.Settled() {
			continue
		}
		for _, wait := range event.Status.Waits {
			if wait.Class == fault.Operator.String() {
				all = append(all, problem{Wait: wait, event: event.Name})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	last := slices.MaxFunc(all, func(a, b problem) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(b.event, a.event), cmp.Compare(b.Step, a.Step))
	})
	return &last
}

func sameProblem(a, b *problem) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.Message == b.Message && a.Since.Equal(&b.Since)
}

// report records one Kubernetes Event for each condition whose reason changed. A condition that is
// true from the start has no Event.
func (r *Reconciler) report(repository *pacv1alpha1.Repository, before *pacv1alpha1.RepositoryStatus) {
	for _, condition := range []apis.ConditionType{
		pacv1alpha1.RepositoryURL, pacv1alpha1.RepositoryCredentials, pacv1alpha1.RepositorySettings,
		pacv1alpha1.RepositoryBudget, pacv1alpha1.RepositorySlots,
	} {
		was, is := before.GetCondition(condition), repository.Status.GetCondition(condition)
		if is == nil || was == nil && is.IsTrue() || was != nil && was.Reason == is.Reason {
			continue
		}
		kind := corev1.EventTypeWarning
		if is.IsTrue() {
			kind = corev1.EventTypeNormal
		}
		r.recorder.Event(repository, kind, is.Reason, is.Message)
	}
}
