// SPDX-License-Identifier: Apache-2.0

// Package scope decides which repositories the token of a run reaches at GitHub besides the event's
// own. Only the repository's own code (authz.OwnCode) gets them.
//
// A list of a Repository (settings.github_app_token_scope_repos) selects repositories whose URLs
// its namespace owns, by the RepositoryClaims: a Repository object with the URL of another
// namespace owns nothing. A list of the administrator (secret-github-app-scope-extra-repos) selects
// repositories of the installation.
package scope

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// MaxOthers is how many other repositories a token may reach: GitHub narrows a token to at most 500
// repositories (docs.github.com, "Create an installation access token for an app").
const MaxOthers = 499

// Resolver finds the other repositories of an event.
type Resolver struct {
	Claims       listers.RepositoryClaimNamespaceLister
	Repositories paclisters.RepositoryLister
}

// Request is an event whose token may reach other repositories. The caller has checked
// authz.OwnCode.
type Request struct {
	Event *v1alpha1.GitEventSpec
	// Repository is the event's, completed by the global one.
	Repository *pacv1alpha1.Repository
	Config     *config.Config
	// Writes is true if the token may do more than read. It then does not reach repositories that
	// only the administrator has listed: they belong to other namespaces.
	Writes bool
	// Covered returns the repositories of the App's installation.
	Covered func(ctx context.Context) ([]v1alpha1.Project, error)
}

// Others returns the other repositories, sorted by their ids, and what was listed but is not
// reached, as clauses. A list that is not allowed or that selects nothing is an Operator fault.
func (r Resolver) Others(ctx context.Context, q Request) (others []v1alpha1.Project, skipped []string, err error) {
	var lists []string
	if q.Repository.Spec.Settings != nil {
		lists = q.Repository.Spec.Settings.GithubAppTokenScopeRepos
	}
	extra := q.Config.TokenScope.Extra
	if q.Writes {
		extra = nil
	}
	if q.Event.InstallationID == 0 || len(lists)+len(extra) == 0 {
		return nil, nil, nil
	}
	if len(lists) > 0 && q.Config.TokenScope.RefusesLists() {
		return nil, nil, Refused()
	}
	listed, err := r.listed(lists, q.Repository.Namespace, q.Config)
	if err != nil {
		return nil, nil, err
	}
	covered, err := q.Covered(ctx)
	if err != nil {
		return nil, nil, err
	}
	s := selection{covered: covered, chosen: map[int64]v1alpha1.Project{}}
	for _, repository := range listed {
		s.addOwned(repository)
	}
	for _, g := range extra {
		s.addExtra(g, q.Event.Project.Owner)
	}
	delete(s.chosen, q.Event.Project.ID)
	if len(s.chosen) > MaxOthers {
		return nil, nil, fault.Operatorf(
			reasonTooMany,
			"the token of a run would reach %d other repositories, and GitHub allows %d: "+
				"narrow the globs of settings.github_app_token_scope_repos or secret-github-app-scope-extra-repos",
			len(s.chosen), MaxOthers,
		)
	}
	others = slices.SortedFunc(maps.Values(s.chosen), func(a, b v1alpha1.Project) int { return cmp.Compare(a.ID, b.ID) })
	slices.Sort(s.skipped)
	return others, slices.Compact(s.skipped), nil
}

// Refused returns the fault of a Repository that lists other repositories although the
// administrator does not allow it.
func Refused() *fault.Error {
	return fault.Operatorf(
		ReasonRefused,
		"settings.github_app_token_scope_repos is not allowed in this cluster: "+
			`remove it, or ask the administrator to set secret-github-app-token-scoped to "false"`,
	)
}

// selection collects repositories of an installation.
type selection struct {
	covered []v1alpha1.Project
	chosen  map[int64]v1alpha1.Project
	skipped []string
}

// addOwned adds a repository that the namespace owns, if the installation covers it and the URL is
// not bound to another repository.
func (s *selection) addOwned(repository owned) {
	at := slices.IndexFunc(s.covered,
		func(p v1alpha1.Project) bool { return strings.EqualFold(nameOf(p), repository.name) })
	switch {
	case at < 0:
		s.skipped = append(s.skipped, repository.name+", which the App's installation does not cover")
	case repository.id != nil && !repository.id.Same(s.covered[at].Identity()):
		s.skipped = append(s.skipped, repository.name+", because another repository has its name now")
	default:
		s.chosen[s.covered[at].ID] = s.covered[at]
	}
}

// addExtra adds what an entry of the administrator's list matches. An entry of another account than
// the event's is for other installations.
func (s *selection) addExtra(g config.RepositoryGlob, account string) {
	found := false
	for _, project := range s.covered {
		if g.Match(nameOf(project)) {
			found = true
			s.chosen[project.ID] = project
		}
	}
	owner, _, _ := strings.Cut(g.Text, "/")
	if !found && g.One() && strings.EqualFold(owner, account) {
		s.skipped = append(s.skipped, g.Text+", which the App's installation does not cover")
	}
}

func nameOf(p v1alpha1.Project) string { return p.Owner + "/" + p.Name }
