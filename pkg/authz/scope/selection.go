// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// selection collects repositories of an installation.
type selection struct {
	event   v1alpha1.Project
	covered []v1alpha1.Project
	chosen  map[int64]v1alpha1.Project
	skipped []string
}

// addOwned adds a repository whose URL the namespace owns, if the installation covers it and the
// URL is not bound to another repository.
func (s *selection) addOwned(repository owned) {
	name := repository.owner + "/" + repository.name
	at := slices.IndexFunc(s.covered, func(p v1alpha1.Project) bool {
		return strings.EqualFold(p.Owner+"/"+p.Name, name)
	})
	switch {
	case at < 0:
		s.skipped = append(s.skipped, name+", which the App's installation does not cover")
	case repository.id != nil && !repository.id.Same(s.covered[at].Identity()):
		s.skipped = append(s.skipped, name+", because another repository has its name now")
	default:
		s.add(s.covered[at])
	}
}

// addExtra adds what an entry of the administrator's list matches. An entry of another account is
// for other installations.
func (s *selection) addExtra(g config.RepositoryGlob) {
	found := false
	for _, project := range s.covered {
		if g.Match(project.Owner, project.Name) {
			found = true
			s.add(project)
		}
	}
	owner, _, _ := strings.Cut(g.Text, "/")
	if !found && g.One() && strings.EqualFold(owner, s.event.Owner) {
		s.skipped = append(s.skipped, g.Text+", which the App's installation does not cover")
	}
}

func (s *selection) add(project v1alpha1.Project) {
	if project.ID != s.event.ID {
		s.chosen[project.ID] = project
	}
}

func (s *selection) result() ([]v1alpha1.Project, []string, error) {
	if len(s.chosen) > MaxOthers {
		return nil, nil, fault.Operatorf(
			reasonTooMany,
			"the token of a run would reach %d other repositories, and GitHub allows %d: "+
				"narrow the globs of settings.github_app_token_scope_repos or secret-github-app-scope-extra-repos",
			len(s.chosen), MaxOthers,
		)
	}
	others := slices.SortedFunc(maps.Values(s.chosen), func(a, b v1alpha1.Project) int { return cmp.Compare(a.ID, b.ID) })
	return others, s.skipped, nil
}

// Skipped returns a sentence about what a token does not reach, empty for nothing.
func Skipped(skipped []string) string {
	if len(skipped) == 0 {
		return ""
	}
	return fmt.Sprintf("The tokens of runs do not reach %s.", strings.Join(skipped, "; "))
}
