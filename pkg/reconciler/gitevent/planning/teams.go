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

// reasonTeamsFound is that of a condition Policy that holds again.
const reasonTeamsFound = "TeamsFound"

// teams tell Repositories which teams of their policies the Git service does not show, in the
// condition Policy.
type teams struct {
	repositories pacclient.RepositoriesGetter
	// namespace is Plumbline's own.
	namespace string
}

// tell makes the condition say what an event has learnt of teams: what is wrong with each that it
// has asked about, "" for nothing. No event waits for that: what could not be written is in the
// log, and the next event that asks writes it.
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

// write reads the Repository live: its settings may be other ones by now.
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
	case !needed, by.Leaves(pacv1alpha1.RepositoryPolicy), live.Generation != repository.Generation:
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

// verdict returns what the condition has to say of teams that are missing, and whether it has to be
// written: not while there is none and never was, nor while one that it names is listed and was not
// seen since.
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
