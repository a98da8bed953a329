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
	}
	if why := s.FixedToken(); why != "" && s.Settings != nil {
		set["settings.run_token_permissions ("+why+")"] = len(s.Settings.RunTokenPermissions) > 0
		set["settings.github_app_token_scope_repos ("+why+")"] = len(s.Settings.GithubAppTokenScopeRepos) > 0
	}
	return thoseSet(set)
}

// FixedToken says why no setting changes what the tokens of runs may do: they are not minted. It is
// "" if the GitHub App serves the Repository, as far as its own fields say.
func (s *RepositorySpec) FixedToken() string {
	git := s.GitProvider
	switch {
	case git == nil:
		return ""
	case git.Type == "gitlab":
		return "GitLab's tokens are what their owner made them"
	case git.Secret != nil && git.WebhookSecret != nil:
		return "the token of git_provider is what its owner made it"
	}
	return ""
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

// OwnFields lists the fields that are set and that Pipelines-as-Code does not have, as paths below
// spec.
func (s *RepositorySpec) OwnFields() []string {
	set := map[string]bool{"params.untrusted": s.Params != nil &&
		slices.ContainsFunc(*s.Params, func(p Params) bool { return p.Untrusted })}
	if own := s.Settings; own != nil {
		set["settings.queue_priority"] = own.QueuePriority != ""
		set["settings.run_ceiling"] = own.RunCeiling != nil
		set["settings.run_token_permissions"] = len(own.RunTokenPermissions) > 0
		set["settings.status_check"] = own.StatusCheck != nil
		set["settings.test_any"] = own.TestAny != nil
		set["settings.trusted"] = len(own.Trusted) > 0
		set["settings.unmatched"] = own.Unmatched != ""
		set["settings.untrusted_service_account"] = own.UntrustedServiceAccount != ""
	}
	return thoseSet(set)
}

// thoseSet returns the fields that are set, sorted.
func thoseSet(set map[string]bool) []string {
	var all []string
	for field, isSet := range set {
		if isSet {
			all = append(all, field)
		}
	}
	slices.Sort(all)
	return all
}
