// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithGlobalFillsUnsetFields(t *testing.T) {
	yes, no, five, six := true, false, 5, 6
	secret := func(name string) *Secret { return &Secret{Name: name} }
	tests := map[string]struct{ own, global, want RepositorySpec }{
		"nothing is set": {
			RepositorySpec{URL: "u"},
			RepositorySpec{URL: "g", ConcurrencyLimit: &five, Params: &[]Params{{Name: "p"}},
				Incomings: &[]Incoming{{Type: "webhook-url"}},
				Settings:  &Settings{PipelineRunProvenance: "default_branch"}},
			RepositorySpec{URL: "u", ConcurrencyLimit: &five, Params: &[]Params{{Name: "p"}},
				Incomings: &[]Incoming{{Type: "webhook-url"}},
				Settings:  &Settings{PipelineRunProvenance: "default_branch"}},
		},
		"what is set wins, an empty list too": {
			RepositorySpec{ConcurrencyLimit: &five, Params: &[]Params{}, Settings: &Settings{PipelineRunProvenance: "source"}},
			RepositorySpec{ConcurrencyLimit: &six, Params: &[]Params{{Name: "p"}},
				Settings: &Settings{PipelineRunProvenance: "default_branch", GitOpsCommandPrefix: "pac"}},
			RepositorySpec{ConcurrencyLimit: &five, Params: &[]Params{},
				Settings: &Settings{PipelineRunProvenance: "source", GitOpsCommandPrefix: "pac"}},
		},
		"settings field by field, GitHub's among them": {
			RepositorySpec{
				Settings: &Settings{Policy: &Policy{OkToTest: []string{"a"}}, Gitlab: &GitlabSettings{TokenAutoRotation: &no}},
			},
			RepositorySpec{Settings: &Settings{Policy: &Policy{PullRequest: []string{"b"}},
				Github: &CommentSettings{CommentStrategy: "update"},
				Gitlab: &GitlabSettings{
					CommentSettings: CommentSettings{CommentStrategy: "update"}, TokenAutoRotation: &yes,
				},
				GithubAppTokenScopeRepos: []string{"o/r"}}},
			RepositorySpec{Settings: &Settings{Policy: &Policy{OkToTest: []string{"a"}},
				Github: &CommentSettings{CommentStrategy: "update"},
				Gitlab: &GitlabSettings{
					CommentSettings: CommentSettings{CommentStrategy: "update"}, TokenAutoRotation: &no,
				},
				GithubAppTokenScopeRepos: []string{"o/r"}}},
		},
		"checks of unmatched pipelines as a whole": {
			RepositorySpec{Settings: &Settings{Unmatched: UnmatchedPaths}},
			RepositorySpec{Settings: &Settings{StatusCheck: &StatusCheck{Enabled: true}}},
			RepositorySpec{Settings: &Settings{Unmatched: UnmatchedPaths}},
		},
		"checks of unmatched pipelines of the global one": {
			RepositorySpec{Settings: &Settings{}}, RepositorySpec{Settings: &Settings{Unmatched: UnmatchedAll}},
			RepositorySpec{Settings: &Settings{Unmatched: UnmatchedAll}},
		},
		"trusted accounts as a whole": {
			RepositorySpec{Settings: &Settings{Trusted: []string{"a"}}},
			RepositorySpec{Settings: &Settings{Trusted: []string{"b"}}},
			RepositorySpec{Settings: &Settings{Trusted: []string{"a"}}},
		},
		"trusted accounts of the global one": {
			RepositorySpec{Settings: &Settings{}}, RepositorySpec{Settings: &Settings{Trusted: []string{"b"}}},
			RepositorySpec{Settings: &Settings{Trusted: []string{"b"}}},
		},
		"a provider that is not named inherits none": {
			RepositorySpec{}, RepositorySpec{GitProvider: &GitProvider{Type: "gitlab", Secret: secret("g")}}, RepositorySpec{},
		},
		"a provider of the same kind is completed": {
			RepositorySpec{GitProvider: &GitProvider{Type: "forgejo", Secret: secret("own")}},
			RepositorySpec{GitProvider: &GitProvider{Type: "gitea", URL: "u", Secret: secret("g"), WebhookSecret: secret("w")}},
			RepositorySpec{
				GitProvider: &GitProvider{Type: "forgejo", URL: "u", Secret: secret("own"), WebhookSecret: secret("w")},
			},
		},
		"a provider of another kind is not": {
			RepositorySpec{GitProvider: &GitProvider{Type: "gitlab"}},
			RepositorySpec{GitProvider: &GitProvider{Type: "github", Secret: secret("g")}},
			RepositorySpec{GitProvider: &GitProvider{Type: "gitlab"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, global := tt.own.DeepCopy(), tt.global.DeepCopy()
			if diff := cmp.Diff(&tt.want, tt.own.WithGlobal(&tt.global)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, &tt.own) + cmp.Diff(global, &tt.global); diff != "" {
				t.Errorf("changed: %s", diff)
			}
		})
	}
}

func TestChecksOfUnmatched(t *testing.T) {
	for want, all := range map[Unmatched][]*Settings{
		"":             {nil, {}, {StatusCheck: &StatusCheck{Mode: "per_unmatched_pipelinerun"}}},
		UnmatchedPaths: {{Unmatched: UnmatchedPaths}, {Unmatched: UnmatchedPaths, StatusCheck: &StatusCheck{Enabled: true}}},
		UnmatchedAll:   {{Unmatched: UnmatchedAll}, {StatusCheck: &StatusCheck{Enabled: true}}},
	} {
		for _, settings := range all {
			if got := settings.ChecksOfUnmatched(); got != want {
				t.Errorf("%+v: %q, want %q", settings, got, want)
			}
		}
	}
}
