// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// reasonTeamsFound is the reason of a condition Policy that is true again.
const reasonTeamsFound = "TeamsFound"

// teams reports in the condition Policy of Repositories which teams of their policies the Git
// service does not show.
type teams struct{ conditions }

// tell updates the condition with what an event has learned about teams: what is wrong with each
// that it has asked for, "" for nothing. No event waits for that. A failed write is logged, and the
// next event that asks writes it.
func (t teams) tell(ctx context.Context, repository *pacv1alpha1.Repository, asked map[string]string) {
	if _, needed := verdict(repository, asked); !needed {
		return
	}
	t.update(ctx, repository, pacv1alpha1.RepositoryPolicy, func(live *pacv1alpha1.Repository) (changed bool) {
		now := live.DeepCopy()
		now.Spec = repository.Spec // completed by the global one
		missing, needed := verdict(now, asked)
		switch {
		case !needed:
			return false
		case missing == "":
			live.By(t.namespace).MarkTrue(pacv1alpha1.RepositoryPolicy, reasonTeamsFound,
				"The Git service shows the teams of settings.policy that it was asked for.")
		default:
			live.By(t.namespace).MarkFalse(pacv1alpha1.RepositoryPolicy, fault.ReasonTeamNotFound, missing)
		}
		return true
	})
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
