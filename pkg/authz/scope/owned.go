// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// owned is a repository at GitHub whose URL a namespace owns.
type owned struct {
	name string // "owner/repo", in lower case
	// id is what the URL is bound to, nil while no event has bound it.
	id *v1alpha1.ProjectIdentity
}

// listed returns the repositories of a namespace that a Repository's globs match. Each glob must
// match one.
func (r Resolver) listed(globs []string, namespace string, c *config.Config) ([]owned, error) {
	if len(globs) == 0 {
		return nil, nil
	}
	all, err := r.owned(namespace, c)
	if err != nil {
		return nil, err
	}
	var matched []owned
	for _, text := range globs {
		g, err := config.NewRepositoryGlob(text)
		if err != nil {
			return nil, fault.Operatorf(reasonBadGlob, "settings.github_app_token_scope_repos: %s", fault.Of(err).Message)
		}
		before := len(matched)
		for _, repository := range all {
			if g.Match(repository.name) {
				matched = append(matched, repository)
			}
		}
		if len(matched) == before {
			return nil, fault.Operatorf(
				reasonNotInNamespace,
				"settings.github_app_token_scope_repos: no Repository of namespace %s owns the URL of a repository that %q matches: "+
					"create one, or remove the entry. Where a proof is required (url-owners), the newest event of that repository must have had it",
				namespace,
				text,
			)
		}
	}
	return matched, nil
}

// owned returns the repositories at GitHub whose URLs a namespace owns.
func (r Resolver) owned(namespace string, c *config.Config) (all []owned, err error) {
	repositories, err := r.Repositories.Repositories(namespace).List(labels.Everything())
	if err != nil {
		return nil, fault.Transientf(reasonNotListed, "listing the Repositories of namespace %s: %s", namespace, err)
	}
	for _, repository := range repositories {
		url, invalid := v1alpha1.CanonicalURL(repository.Spec.URL)
		name, atGitHub := c.AtGitHub(url)
		held, missing := r.Claims.Get(v1alpha1.ClaimName(url))
		if invalid != nil || !atGitHub || missing != nil {
			continue
		}
		if id, owns := claim.Owned(repository, held, c.Owners); owns {
			all = append(all, owned{name, id})
		}
	}
	return all, nil
}
