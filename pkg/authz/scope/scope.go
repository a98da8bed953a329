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
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
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
	owned, err := r.owned(lists, q)
	if err != nil {
		return nil, nil, err
	}
	covered, err := q.Covered(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the repositories of the App's installation: %w", err)
	}
	s := selection{event: q.Event.Project, covered: covered, chosen: map[int64]v1alpha1.Project{}}
	for _, repository := range owned {
		s.addOwned(repository)
	}
	for _, g := range extra {
		s.addExtra(g)
	}
	return s.result()
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

// owned is a repository whose URL belongs to a namespace.
type owned struct {
	owner, name string
	// id is what the URL is bound to, nil while no event has bound it.
	id *v1alpha1.ProjectIdentity
}

// owned returns the repositories that a Repository's globs match. Each glob must match one.
func (r Resolver) owned(lists []string, q Request) ([]owned, error) {
	if len(lists) == 0 {
		return nil, nil
	}
	namespace := q.Repository.Namespace
	all, err := r.claimed(namespace, q.Config)
	if err != nil {
		return nil, err
	}
	var matched []owned
	for _, text := range lists {
		g, err := config.NewRepositoryGlob(text)
		if err != nil {
			return nil, fault.Operatorf(reasonBadGlob, "settings.github_app_token_scope_repos: %s", fault.Of(err).Message)
		}
		found := false
		for _, repository := range all {
			if g.Match(repository.owner, repository.name) {
				found = true
				matched = append(matched, repository)
			}
		}
		if !found {
			return nil, fault.Operatorf(
				reasonNotInNamespace,
				"settings.github_app_token_scope_repos: no Repository of namespace %s owns the URL of a repository that %q matches: "+
					"create one, or remove the entry",
				namespace,
				text,
			)
		}
	}
	return matched, nil
}

// claimed returns the repositories at GitHub whose URLs a namespace owns.
func (r Resolver) claimed(namespace string, c *config.Config) ([]owned, error) {
	claims, err := r.Claims.List(labels.Everything())
	if err != nil {
		return nil, fault.Transientf(reasonNotListed, "listing the RepositoryClaims: %s", err)
	}
	var all []owned
	for _, held := range claims {
		if held.Spec.Repository.Namespace != namespace || held.Status.ReleasedAt != nil || !proven(held, c.Owners) {
			continue
		}
		repository, err := r.Repositories.Repositories(namespace).Get(held.Spec.Repository.Name)
		if apierrors.IsNotFound(err) || err == nil && !v1alpha1.SameURL(repository.Spec.URL, held.Spec.URL) {
			continue
		}
		if err != nil {
			return nil, fault.Transientf(reasonNotListed, "reading the Repositories of namespace %s: %s", namespace, err)
		}
		if one, ok := ownedBy(repository, held, c.GitHubURL); ok {
			all = append(all, one)
		}
	}
	return all, nil
}

// ownedBy returns the repository at GitHub that a claim gives to a Repository. ok is false if there
// is none, or if the Git service has another repository there.
func ownedBy(repository *pacv1alpha1.Repository, held *v1alpha1.RepositoryClaim, github string) (one owned, ok bool) {
	owner, name, found := ownerAndName(held.Spec.URL, github)
	id, invalid := claim.Expected(repository, held.Status)
	return owned{owner, name, id}, found && invalid == nil && claim.Refusal(repository, held.Status) == ""
}

// proven reports whether a claim has the proof that the administrator requires.
func proven(held *v1alpha1.RepositoryClaim, owners config.Owners) bool {
	if !owners.Asked {
		return true
	}
	if listed := owners.Listed(held.Spec.URL); len(listed) > 0 {
		return slices.Contains(listed, held.Spec.Repository.Namespace)
	}
	return owners.Broken == "" && held.Status.Proven
}

// ownerAndName parses the canonical URL of a repository at GitHub.
func ownerAndName(canonical, github string) (owner, name string, found bool) {
	at, err := url.Parse(canonical)
	base, wrong := url.Parse(github)
	if err != nil || wrong != nil || at.Host != base.Host {
		return "", "", false
	}
	owner, name, found = strings.Cut(strings.Trim(at.Path, "/"), "/")
	return owner, name, found && !strings.Contains(name, "/")
}
