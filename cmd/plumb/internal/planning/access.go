// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
)

// CanWrite implements plan.Access. It notes no assumption for a pull request from a branch of the
// repository itself: pushing that branch takes write access.
func (l *local) CanWrite(_ context.Context, user string) (bool, error) {
	if l.untrusted(user) {
		l.assume("%s may not write to the repository, and is no member of its owner", user)
		return false, nil
	}
	opens := l.Spec.PullRequest != nil && l.Spec.Comment == nil && l.Spec.EventType != match.LabelEvent
	if opens && !l.Delivery.Recorded && l.Spec.PullRequest.HeadProjectID == l.Spec.Project.ID {
		return true, nil
	}
	l.assume("%s may write to the repository, so no approval is needed", user)
	return true, nil
}

// untrusted reports whether a user is the given author, who may not start runs.
func (l *local) untrusted(user string) bool {
	return l.Given.Author != "" && strings.EqualFold(user, l.Given.Author)
}

// Member implements plan.Access. It is not called for a user who can write, and the author who
// cannot is no member.
func (l *local) Member(context.Context, string) (bool, error) { return false, nil }

// InTeam implements plan.Access.
func (l *local) InTeam(_ context.Context, team, user string) (bool, error) {
	if l.untrusted(user) {
		l.assume("%s is not in %s, which settings.policy lists", user, team)
		return false, nil
	}
	l.assume("%s is in %s, which settings.policy lists", user, team)
	return true, nil
}

// Owner implements plan.Access. A user who can write needs no OWNERS file; the author who cannot
// write is in none.
func (l *local) Owner(context.Context, string) (bool, error) { return false, nil }

// Actor implements plan.Access. It believes the event, because the user of plumb wrote it.
func (l *local) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, reported string) (string, error) {
	return reported, nil
}
