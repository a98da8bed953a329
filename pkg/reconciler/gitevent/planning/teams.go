// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// reasonTeamsFound is the reason of a condition Policy that is true again.
const reasonTeamsFound = "TeamsFound"

// teams reports in the condition Policy of Repositories which teams of their policies the Git
// service does not show.
type teams struct {
	repositories pacclient.RepositoriesGetter
	// namespace is Plumbline's own.
	namespace string
}

// tell updates the condition with what an event has learned about teams: what is wrong with each
// that it has asked for, "" for nothing. No event waits for that. A failed write is logged, and the
// next event that asks writes it.
func (t teams) tell(ctx context.Context, repository *pacv1alpha1.Repository, asked map[string]string) {
	if _, needed := verdict(repository, asked); !needed {
		return
	}
	err := t.write(ctx, repository, asked)
	if fault.Is(err, fault.Conflict) {
		err = t.write(ctx, repository, asked)
	}
	if err != nil {
		logging.FromContext(ctx).
			Warnw("condition Policy not written", "repository", repository.Namespace+"/"+repository.Name, "error", err)
	}
}

// write reads the Repository live, because its settings may have changed.
func (t teams) write(ctx context.Context, repository *pacv1alpha1.Repository, asked map[string]string) error {
	all := t.repositories.Repositories(repository.Namespace)
	live, err := all.Get(ctx, repository.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, err)
	}
	now := live.DeepCopy()
	now.Spec = repository.Spec // completed by the global one
	by := live.By(t.namespace)
	missing, needed := verdict(now, asked)
	switch {
	case !needed, by.MustLeave(pacv1alpha1.RepositoryPolicy), live.Generation != repository.Generation:
		return nil
	case missing == "":
		by.MarkTrue(
			pacv1alpha1.RepositoryPolicy,
			reasonTeamsFound,
			"The Git service shows the teams of settings.policy that it was asked for.",
		)
	default:
		by.MarkFalse(pacv1alpha1.RepositoryPolicy, fault.ReasonTeamNotFound, missing)
	}
	if _, err := all.UpdateStatus(ctx, live, metav1.UpdateOptions{}); err != nil {
		return fault.FromKube(
			fault.VerbUpdate,
			fmt.Errorf("writing the status of Repository %s/%s: %w", live.Namespace, live.Name, err),
		)
	}
	return nil
}

// verdict returns what the condition must say about missing teams, and whether it must be written.
// It need not be while no team is missing and none was, nor while the policy still lists a team
// that the condition names and that was not seen since.
func verdict(repository *pacv1alpha1.Repository, asked map[string]string) (missing string, needed bool) {
	var problems []string
	for _, team := range slices.Sorted(maps.Keys(asked)) {
		if problem := asked[team]; problem != "" {
			problems = append(problems, problem+".")
		}
	}
	missing = strings.Join(problems, " ")
	is := repository.Status.GetCondition(pacv1alpha1.RepositoryPolicy)
	if missing != "" {
		return missing, is == nil || !is.IsFalse() || is.Message != missing
	}
	return "", is != nil && is.IsFalse() && !stillMissing(repository, is.Message, asked)
}

// stillMissing reports whether a message names a team that the policy lists and that was not seen
// now. Messages quote the names of teams.
func stillMissing(repository *pacv1alpha1.Repository, message string, asked map[string]string) bool {
	settings := repository.Spec.Settings
	if settings == nil || settings.Policy == nil {
		return false
	}
	return slices.ContainsFunc(
		append(slices.Clone(settings.Policy.PullRequest), settings.Policy.OkToTest...),
		func(team string) bool {
			team = strings.TrimSpace(team)
			_, seen := asked[team]
			return team != "" && !seen && strings.Contains(message, strconv.Quote(strings.Trim(team, "/")))
		},
	)
}
