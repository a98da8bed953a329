// SPDX-License-Identifier: Apache-2.0

package onboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

func TestWebhookAddIsIdempotent(t *testing.T) {
	e := newEnv(t)
	e.must(e.create(e.token(gitlab.Maintainer)))
	hook := Webhook{Namespace: team, Name: "app", URL: hookURL, System: "plumbline"}
	e.must(hook.Add(t.Context(), e.cluster, e.say))
	first := e.git.Hooks(project)
	want := []string{gitlab.MergeRequestHook, gitlab.NoteHook, gitlab.PushHook, gitlab.TagPushHook}
	if len(first) != 1 || first[0].URL != hookURL || first[0].Token != e.secret("webhook.secret") ||
		cmp.Diff(want, first[0].Events) != "" {
		t.Fatalf("the webhooks are %+v", first)
	}
	e.must(hook.Add(t.Context(), e.cluster, e.say))
	if diff := cmp.Diff(first, e.git.Hooks(project)); diff != "" {
		t.Errorf("the second call changed the webhook:\n%s", diff)
	}
	if said := e.said.String(); !strings.Contains(said, "was added") || strings.Contains(said, first[0].Token) {
		t.Error(said)
	}
}

func TestWebhookAddCorrectsAWebhook(t *testing.T) {
	e := newEnv(t)
	e.must(e.create(e.token(gitlab.Maintainer)))
	e.git.AddHook(project, "https://hooks.example.com", "old", gitlab.PushHook)
	e.git.AddHook(project, "https://elsewhere.example.com/", "theirs", gitlab.PushHook)
	e.must(Webhook{Namespace: team, Name: "app", URL: hookURL}.Add(t.Context(), e.cluster, e.say))
	hooks := e.git.Hooks(project)
	if len(hooks) != 2 || len(hooks[0].Events) != 4 || hooks[0].Token != e.secret("webhook.secret") ||
		hooks[1].Token != "theirs" {
		t.Errorf("the webhooks are %+v", hooks)
	}
}

// Each call has listed the webhooks before the other one has created its own.
func TestTwoCallsAtOnceLeaveOneWebhook(t *testing.T) {
	e := newEnv(t)
	e.must(e.create(e.token(gitlab.Maintainer)))
	both := make(chan struct{})
	held := e.git.Inject(gitlab.Fault{Route: gitlab.RouteHookCreate, Do: forge.Hold(both)})
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			say := func(string, ...any) {}
			ended <- Webhook{Namespace: team, Name: "app", URL: hookURL}.Add(t.Context(), e.cluster, say)
		}()
	}
	e.must(held.Wait(t.Context(), 2))
	close(both)
	for range 2 {
		e.must(<-ended)
	}
	first := e.git.Hooks(project)
	if len(first) != 1 || first[0].Token != e.secret("webhook.secret") || len(first[0].Events) != 4 {
		t.Fatalf("the webhooks are %+v", first)
	}
	e.git.AddHook(project, hookURL, "younger")
	e.must(Webhook{Namespace: team, Name: "app", URL: hookURL}.Add(t.Context(), e.cluster, e.say))
	if hooks := e.git.Hooks(project); len(hooks) != 2 || hooks[1].Token != "younger" {
		t.Errorf("the webhooks are %+v", hooks)
	}
}

func TestWebhookAddNeedsAMaintainer(t *testing.T) {
	e := newEnv(t)
	stored := e.token(gitlab.Developer)
	e.must(e.create(stored))
	hook := Webhook{Namespace: team, Name: "app", URL: hookURL}
	e.refuses(hook.Add(t.Context(), e.cluster, e.say), "the role Maintainer", "--token-file")
	hook.Token = e.token(gitlab.Maintainer)
	e.must(hook.Add(t.Context(), e.cluster, e.say))
	if len(e.git.Hooks(project)) != 1 || e.secret("provider.token") != stored {
		t.Error("the Maintainer's token is not used, or is stored")
	}
}

func TestUpdateTokenStoresWhatGitLabAccepts(t *testing.T) {
	e := newEnv(t)
	old := e.token(gitlab.Developer)
	e.must(e.create(old))
	of := metav1.ObjectMeta{Namespace: team, Name: "app"}
	revoked := e.token(gitlab.Maintainer)
	e.git.RevokeToken(revoked)
	e.refuses(UpdateToken(t.Context(), e.cluster, of, revoked, e.say), "the new token was not stored")
	if e.secret("provider.token") != old {
		t.Error("a revoked token was stored")
	}
	shared, good := e.secret("webhook.secret"), e.token(gitlab.Maintainer)
	e.must(UpdateToken(t.Context(), e.cluster, of, good, e.say))
	if e.secret("provider.token") != good || e.secret("webhook.secret") != shared {
		t.Error("the new token is not stored, or the webhook's secret changed")
	}
	if strings.Contains(e.said.String(), good) {
		t.Error("the token was printed")
	}
}

// Two Secrets of one Repository may use the same key.
func TestUpdateTokenWithOneKeyInTwoSecrets(t *testing.T) {
	e := newEnv(t)
	old, good := e.token(gitlab.Maintainer), e.token(gitlab.Maintainer)
	for name, value := range map[string]string{"access": old, "hook": "shared"} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name},
			Data:       map[string][]byte{"token": []byte(value)},
		}
		e.must(e.kube.Tracker().Add(secret))
	}
	_, err := e.cluster.Own.PipelinesascodeV1alpha1().Repositories(team).Create(t.Context(), &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "app"},
		Spec: pacv1alpha1.RepositorySpec{URL: e.web, GitProvider: &pacv1alpha1.GitProvider{
			Type:          "gitlab",
			Secret:        &pacv1alpha1.Secret{Name: "access", Key: "token"},
			WebhookSecret: &pacv1alpha1.Secret{Name: "hook", Key: "token"},
		}},
	}, metav1.CreateOptions{})
	e.must(err)
	e.must(UpdateToken(t.Context(), e.cluster, metav1.ObjectMeta{Namespace: team, Name: "app"}, good, e.say))
	e.must(Webhook{Namespace: team, Name: "app", URL: hookURL}.Add(t.Context(), e.cluster, e.say))
	for name, want := range map[string]string{"access": good, "hook": "shared"} {
		secret, err := e.kube.CoreV1().Secrets(team).Get(t.Context(), name, metav1.GetOptions{})
		e.must(err)
		if string(secret.Data["token"]) != want {
			t.Errorf("Secret %s has the wrong value", name)
		}
	}
	if hooks := e.git.Hooks(project); len(hooks) != 1 || hooks[0].Token != "shared" {
		t.Error("the webhook has not the Repository's secret token")
	}
}

func TestCreateDoesNotIgnoreTheGivenWebhookSecret(t *testing.T) {
	e := newEnv(t)
	token := e.token(gitlab.Maintainer)
	e.must(e.create(token))
	again := &Repository{Namespace: team, URL: e.web, GitLab: true, Token: token, WebhookSecret: "s3cret"}
	err := again.Create(t.Context(), e.cluster, e.say)
	e.refuses(err, "its key webhook.secret has another value")
	again.Token = e.token(gitlab.Maintainer)
	e.refuses(again.Create(t.Context(), e.cluster, e.say), "exists with another token")
	again.Token = token
	again.WebhookSecret = e.secret("webhook.secret")
	e.must(again.Create(t.Context(), e.cluster, e.say))
}

func TestWebhookAddRefusesAddressesOfNoReceiver(t *testing.T) {
	e := newEnv(t)
	e.must(e.create(e.token(gitlab.Maintainer)))
	for _, address := range []string{"hooks.example.com", "https://", "https://u:s3cret@hooks.example.com", "ftp://h/", "https://%zz:s3cret"} {
		err := Webhook{Namespace: team, Name: "app", URL: address}.Add(t.Context(), e.cluster, e.say)
		e.refuses(err, "--webhook-url: give the https:// URL")
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Error(err)
		}
	}
	if hooks := e.git.Hooks(project); len(hooks) > 0 {
		t.Errorf("%+v", hooks)
	}
}

func TestWebhookAddFindsItsWebhookAmongMany(t *testing.T) {
	e := newEnv(t)
	e.must(e.create(e.token(gitlab.Maintainer)))
	for i := range 120 {
		e.git.AddHook(project, fmt.Sprintf("https://elsewhere.example.com/%d", i), "theirs", gitlab.PushHook)
	}
	e.git.AddHook(project, hookURL, "old", gitlab.PushHook)
	e.must(Webhook{Namespace: team, Name: "app", URL: hookURL}.Add(t.Context(), e.cluster, e.say))
	if hooks := e.git.Hooks(
		project,
	); len(hooks) != 121 || hooks[120].Token != e.secret("webhook.secret") ||
		hooks[0].Token != "theirs" {
		t.Errorf("there are %d webhooks", len(hooks))
	}
}

func TestCommandsForWebhooksRefuseOtherRepositories(t *testing.T) {
	e := newEnv(t)
	e.must(
		(&Repository{Namespace: team, Name: "hub", URL: "https://github.com/acme/app"}).Create(t.Context(), e.cluster, e.say),
	)
	e.must((&Repository{Namespace: team, Name: "shared", URL: e.web, GitLab: true}).Create(t.Context(), e.cluster, e.say))
	for name, want := range map[string]string{"hub": "a GitHub App has one webhook", "shared": "global Repository", "none": "not found"} {
		e.refuses(Webhook{Namespace: team, Name: name, URL: hookURL}.Add(t.Context(), e.cluster, e.say), want)
	}
}
