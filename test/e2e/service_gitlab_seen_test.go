// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// seen is what there is to see on the GitLab, in GitHub's words.
func (g *onGitLab) seen() invariants.GitLab {
	return invariants.GitLab{GitLab: g.GitLab, Project: projectName, Bot: g.token.User.Username, Heads: g.heads}
}

func (g *onGitLab) checks(sha string) []check { return g.seen().Checks(sha) }

func (g *onGitLab) await(ctx context.Context, sha string, ok func([]check) bool) error {
	return g.WaitFor(ctx, func(s *gitlab.State) bool { return ok(g.seen().Shown(s, sha)) })
}

func (g *onGitLab) log() (all traffic) {
	for _, request := range g.Requests() {
		if !strings.HasPrefix(request.Route, "hooks.") { // which are for no event that there is
			all.requests = append(all.requests, request)
		}
	}
	seen := g.seen()
	all.writes, all.deliveries = seen.Writes(), seen.Deliveries()
	return all
}
