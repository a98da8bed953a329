// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
)

// WithGlobal returns the spec completed by the global Repository's. What is set in s wins. It
// changes neither.
func (s *RepositorySpec) WithGlobal(global *RepositorySpec) *RepositorySpec {
	merged, g := s.DeepCopy(), global.DeepCopy()
	merged.ConcurrencyLimit = cmp.Or(merged.ConcurrencyLimit, g.ConcurrencyLimit)
	merged.Incomings = cmp.Or(merged.Incomings, g.Incomings)
	merged.Params = cmp.Or(merged.Params, g.Params)
	merged.GitProvider = merged.GitProvider.withGlobal(g.GitProvider)
	merged.Settings = merged.Settings.withGlobal(g.Settings)
	return merged
}

// withGlobal completes git_provider if it is set and is for the same kind of service: credentials
// of one service are not for another.
func (p *GitProvider) withGlobal(g *GitProvider) *GitProvider {
	if p == nil || g == nil || p.Type != "" && g.Type != "" && service(p.Type) != service(g.Type) {
		return p
	}
	p.Type, p.URL, p.User = cmp.Or(p.Type, g.Type), cmp.Or(p.URL, g.URL), cmp.Or(p.User, g.User)
	p.Secret, p.WebhookSecret = cmp.Or(p.Secret, g.Secret), cmp.Or(p.WebhookSecret, g.WebhookSecret)
	return p
}

// service returns the same text for types that are the same service.
func service(kind string) string {
	if kind == "forgejo" {
		return "gitea"
	}
	return kind
}

func (s *Settings) withGlobal(g *Settings) *Settings {
	if s == nil || g == nil {
		return cmp.Or(s, g)
	}
	s.PipelineRunProvenance = cmp.Or(s.PipelineRunProvenance, g.PipelineRunProvenance)
	s.QueuePriority = cmp.Or(s.QueuePriority, g.QueuePriority)
	if s.Unmatched == "" && s.StatusCheck == nil { // two names of one setting
		s.Unmatched, s.StatusCheck = g.Unmatched, g.StatusCheck
	}
	s.UntrustedServiceAccount = cmp.Or(s.UntrustedServiceAccount, g.UntrustedServiceAccount)
	s.GitOpsCommandPrefix, s.TestAny = cmp.Or(s.GitOpsCommandPrefix, g.GitOpsCommandPrefix), cmp.Or(s.TestAny, g.TestAny)
	s.Policy, s.Github = cmp.Or(s.Policy, g.Policy), cmp.Or(s.Github, g.Github)
	s.Forgejo, s.AIAnalysis = cmp.Or(s.Forgejo, g.Forgejo), cmp.Or(s.AIAnalysis, g.AIAnalysis)
	if len(s.GithubAppTokenScopeRepos) == 0 {
		s.GithubAppTokenScopeRepos = g.GithubAppTokenScopeRepos
	}
	if s.RunTokenPermissions == nil {
		s.RunTokenPermissions = g.RunTokenPermissions
	}
	if s.Trusted == nil {
		s.Trusted = g.Trusted
	}
	s.RunCeiling = s.RunCeiling.withGlobal(g.RunCeiling)
	if s.Gitlab == nil || g.Gitlab == nil {
		s.Gitlab = cmp.Or(s.Gitlab, g.Gitlab)
		return s
	}
	s.Gitlab.CommentStrategy = cmp.Or(s.Gitlab.CommentStrategy, g.Gitlab.CommentStrategy)
	s.Gitlab.TokenAutoRotation = cmp.Or(s.Gitlab.TokenAutoRotation, g.Gitlab.TokenAutoRotation)
	return s
}

func (c *RunCeiling) withGlobal(g *RunCeiling) *RunCeiling {
	if c == nil || g == nil {
		return cmp.Or(c, g)
	}
	if len(c.ServiceAccounts) == 0 {
		c.ServiceAccounts = g.ServiceAccounts
	}
	c.PodSecurity = cmp.Or(c.PodSecurity, g.PodSecurity)
	return c
}
