// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
)

// Restricts returns the field that restricts who may start runs but that this version cannot
// evaluate for the Repository's service, "" if there is none. The caller then denies everybody:
// denying too much is safer than ignoring the restriction.
func (s *RepositorySpec) Restricts() string {
	if s.Settings != nil && s.Settings.Policy != nil && s.GitProvider != nil && !served(s.GitProvider.Type) {
		return "settings.policy"
	}
	return ""
}

// served reports whether this version supports a type of service. Without a type, the delivery
// decides.
func served(kind string) bool { return kind == "" || kind == "github" || kind == "gitlab" }

// IgnoredFields lists the fields that are set but that this version ignores, as paths below spec.
func (s *RepositorySpec) IgnoredFields() []string {
	set := map[string]bool{
		fmt.Sprintf("incoming[%d] and those after it", MaxIncomingRules): s.Incomings != nil &&
			len(*s.Incomings) > MaxIncomingRules,
	}
	s.Settings.ignoredFields(set)
	if git := s.GitProvider; git != nil {
		set["git_provider.type: "+git.Type] = !served(git.Type)
		if s.Settings != nil {
			git.ignoredScopes(s.Settings, set)
		}
	}
	var all []string
	for field, isSet := range set {
		if isSet {
			all = append(all, field)
		}
	}
	slices.Sort(all)
	return all
}

// ignoredScopes adds the settings of tokens that a service's own tokens cannot follow, and whether
// they are set.
func (g *GitProvider) ignoredScopes(s *Settings, set map[string]bool) {
	gitlab := g.Type == "gitlab"
	set["settings.run_token_permissions (GitLab's tokens are what their owner made them)"] = gitlab &&
		len(s.RunTokenPermissions) > 0
	set["settings.github_app_token_scope_repos (GitLab's tokens are what their owner made them)"] = gitlab &&
		len(s.GithubAppTokenScopeRepos) > 0
	set["settings.run_token_permissions (the token of git_provider is what its owner made it)"] =
		g.Type == "github" && g.Secret != nil && g.WebhookSecret != nil && len(s.RunTokenPermissions) > 0
}

// ignoredFields adds the settings that this version ignores, and whether they are set.
func (s *Settings) ignoredFields(set map[string]bool) {
	if s == nil {
		return
	}
	set[fieldAI] = s.AIAnalysis != nil
	set[fieldForgejo] = s.Forgejo != nil && *s.Forgejo != ForgejoSettings{}
	if s.Gitlab != nil {
		set[fieldTokenRotation] = s.Gitlab.TokenAutoRotation != nil && *s.Gitlab.TokenAutoRotation
	}
}
