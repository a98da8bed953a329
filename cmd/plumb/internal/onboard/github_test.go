// SPDX-License-Identifier: Apache-2.0

package onboard

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// hub is env with a repository at a GitHub, whose Repository names a token and no App serves.
type hub struct {
	*env
	forge *forge.GitHub
}

func newHub(t *testing.T) *hub {
	h := &hub{newEnv(t), forge.New(forge.Options{})}
	h.must(h.forge.Start())
	t.Cleanup(func() { _ = h.forge.Close() })
	h.forge.CreateRepo("acme", "app", forge.RepoOptions{Private: true})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "github"}}
	secret.Data = map[string][]byte{"provider.token": []byte(h.userToken("writer", "write"))}
	h.must(h.kube.Tracker().Add(secret))
	of := &pacv1alpha1.Secret{Name: "github"}
	_, err := h.cluster.Own.PipelinesascodeV1alpha1().Repositories(team).Create(t.Context(), &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "app"},
		Spec: pacv1alpha1.RepositorySpec{
			URL:         h.forge.URL() + "/acme/app",
			GitProvider: &pacv1alpha1.GitProvider{Type: "github", Secret: of, WebhookSecret: of},
		},
	}, metav1.CreateOptions{})
	h.must(err)
	return h
}

// userToken returns a token of a user with a role, who may set webhooks if the role is admin.
func (h *hub) userToken(user, role string) string {
	token := h.forge.CreateToken(forge.NewToken{User: user, Repo: "acme/app", Permissions: map[string]string{
		"statuses": "write", "repository_hooks": "write",
	}})
	h.forge.SetCollaborator("acme/app", user, role)
	return token
}

func (h *hub) value(key string) string {
	h.Helper()
	secret, err := h.kube.CoreV1().Secrets(team).Get(h.Context(), "github", metav1.GetOptions{})
	h.must(err)
	return string(secret.Data[key])
}

// The webhook that a user made by hand sends forms, and has other events and another secret.
func TestWebhookAddAtGitHub(t *testing.T) {
	h := newHub(t)
	hook := Webhook{Namespace: team, Name: "app", URL: hookURL}
	h.refuses(hook.Add(t.Context(), h.cluster, h.say), "the permission Webhooks: write", "--token-file")
	hook.Token = h.userToken("owner", "admin")
	h.must(hook.Add(t.Context(), h.cluster, h.say))
	first := h.forge.Hooks("acme/app")
	if len(first) != 1 || first[0].URL != hookURL || first[0].Secret != h.value("webhook.secret") ||
		len(first[0].Secret) != 64 || first[0].ContentType != "json" || !first[0].Active ||
		strings.Join(first[0].Events, " ") != "commit_comment issue_comment pull_request push" {
		t.Fatalf("the webhooks are %+v", first)
	}
	h.forge.SetHook("acme/app", forge.Hook{ID: first[0].ID, URL: "https://hooks.example.com", Secret: "old",
		ContentType: "form", Events: []string{"merge_group", "push"}})
	h.must(hook.Add(t.Context(), h.cluster, h.say))
	now := h.forge.Hooks("acme/app")
	if len(now) != 1 || now[0].Secret != first[0].Secret || now[0].ContentType != "json" || !now[0].Active ||
		!slices.Contains(now[0].Events, "merge_group") || len(now[0].Events) != 5 {
		t.Errorf("the webhooks are %+v", now)
	}
	if said := h.said.String(); strings.Contains(said, first[0].Secret) || h.value("provider.token") == hook.Token {
		t.Errorf("a secret was printed, or the token stored: %s", said)
	}
}

func TestCreateStoresTheTokenThatGitHubAccepts(t *testing.T) {
	h := newHub(t)
	h.forge.CreateRepo("acme", "new", forge.RepoOptions{})
	token := h.forge.CreateToken(forge.NewToken{Repo: "acme/new"})
	r := &Repository{Namespace: team, URL: h.forge.URL() + "/acme/new", Token: token}
	h.must(r.Create(t.Context(), h.cluster, h.say))
	made, err := h.cluster.Own.PipelinesascodeV1alpha1().Repositories(team).Get(t.Context(), "new", metav1.GetOptions{})
	h.must(err)
	git := made.Spec.GitProvider
	if git.Type != "github" || git.Secret.Name != "new-github" || git.WebhookSecret.Name != "new-github" {
		t.Errorf("git_provider is %+v", git)
	}
	secret, err := h.kube.CoreV1().Secrets(team).Get(t.Context(), "new-github", metav1.GetOptions{})
	h.must(err)
	if string(secret.Data["provider.token"]) != token || len(secret.Data["webhook.secret"]) != 64 {
		t.Error("the Secret does not have both values")
	}
}

func TestUpdateTokenStoresWhatGitHubAccepts(t *testing.T) {
	h := newHub(t)
	old, of := h.value("provider.token"), metav1.ObjectMeta{Namespace: team, Name: "app"}
	for token, want := range map[string]string{
		"github_pat_unknown": "GitHub refuses the token", h.userToken("reader", "read"): "no write access",
	} {
		h.refuses(UpdateToken(t.Context(), h.cluster, of, token, h.say), "the new token was not stored", want)
	}
	if h.value("provider.token") != old {
		t.Error("a token was stored that GitHub does not accept")
	}
	good := h.userToken("other", "write")
	h.must(UpdateToken(t.Context(), h.cluster, of, good, h.say))
	if h.value("provider.token") != good || strings.Contains(h.said.String(), good) {
		t.Errorf("the token is not stored, or printed: %s", h.said.String())
	}
}
