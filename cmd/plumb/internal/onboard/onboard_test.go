// SPDX-License-Identifier: Apache-2.0

package onboard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	ownfake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

const (
	team    = "team-a"
	project = "acme/team/app"
	hookURL = "https://hooks.example.com/"
)

// env is a cluster without objects and a GitLab with one project.
type env struct {
	*testing.T
	cluster *kube.Cluster
	kube    *kubefake.Clientset
	git     *gitlab.GitLab
	web     string
	said    strings.Builder
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{T: t, kube: kubefake.NewSimpleClientset(), git: gitlab.New(gitlab.Options{})}
	e.cluster = &kube.Cluster{Kube: e.kube, Own: ownfake.NewSimpleClientset()}
	e.must(e.git.Start())
	t.Cleanup(func() { _ = e.git.Close() })
	e.web = e.git.CreateProject(project, gitlab.ProjectOptions{}).WebURL
	return e
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) say(format string, args ...any) { fmt.Fprintf(&e.said, format+"\n", args...) }

func (e *env) token(level gitlab.Level, scopes ...string) string {
	return e.git.CreateToken(gitlab.NewToken{Project: project, Level: level, Scopes: scopes}).Value
}

// create onboards the project with a token.
func (e *env) create(token string) error {
	r := &Repository{Namespace: team, URL: e.web, GitLab: true, Token: token}
	return r.Create(e.Context(), e.cluster, e.say)
}

// secret returns a value of the project's Secret; "" if there is none.
func (e *env) secret(key string) string {
	secret, err := e.kube.CoreV1().Secrets(team).Get(e.Context(), "app-gitlab", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return string(secret.Data[key])
}

// refuses ends the test unless err has each part.
func (e *env) refuses(err error, parts ...string) {
	e.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			e.Errorf("got %v, want an error with %q", err, part)
		}
	}
}

func TestCreateStoresTheTokenThatGitLabAccepts(t *testing.T) {
	e := newEnv(t)
	token := e.token(gitlab.Maintainer)
	e.must(e.create(token))
	repository, err := e.cluster.Own.PipelinesascodeV1alpha1().
		Repositories(team).
		Get(t.Context(), "app", metav1.GetOptions{})
	e.must(err)
	git := repository.Spec.GitProvider
	if repository.Spec.URL != e.web || git.Type != "gitlab" || git.Secret.Name != "app-gitlab" ||
		git.WebhookSecret.Name != "app-gitlab" {
		t.Errorf("the Repository is %+v, %+v", repository.Spec, git)
	}
	shared := e.secret("webhook.secret")
	if e.secret("provider.token") != token || len(shared) != 64 {
		t.Error("the Secret does not have both values")
	}
	e.must(e.create(token)) // again
	if e.secret("webhook.secret") != shared ||
		!strings.Contains(e.said.String(), "Repository team-a/app exists already and stays") {
		t.Errorf("the second call changed something: %s", e.said.String())
	}
	if strings.Contains(e.said.String(), token) || strings.Contains(e.said.String(), shared) {
		t.Error("a secret was printed")
	}
}

func TestCreateRefusesTokensThatCannotReport(t *testing.T) {
	for name, test := range map[string]struct {
		token func(*env) string
		want  string
	}{
		"it may only read":     {func(e *env) string { return e.token(gitlab.Maintainer, gitlab.ScopeReadAPI) }, `the scopes "read_api"`},
		"its role is Reporter": {func(e *env) string { return e.token(gitlab.Reporter) }, "less than the role Developer"},
		"it is of nobody":      {func(*env) string { return "glpat-unknown" }, "GitLab refuses the token"},
		"it is for other project": {func(e *env) string {
			e.git.CreateProject("x/y", gitlab.ProjectOptions{})
			return e.git.CreateToken(gitlab.NewToken{Project: "x/y"}).Value
		}, "no such project"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.refuses(e.create(test.token(e)), test.want)
			if e.secret("provider.token") != "" {
				t.Error("the token was stored")
			}
		})
	}
}

func TestCreateNamesTheMissingRight(t *testing.T) {
	e := newEnv(t)
	e.kube.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "app-gitlab",
			errors.New(`User "eve" cannot create resource "secrets" in API group "" in the namespace "team-a"`))
	})
	e.refuses(
		e.create(e.token(gitlab.Developer)),
		"creating Secret team-a/app-gitlab",
		"lacks the right to create secrets in namespace team-a",
	)
}

func TestCreateRefusesAURLThatIsServed(t *testing.T) {
	e := newEnv(t)
	e.must(
		(&Repository{Namespace: "team-b", Name: "first", URL: "https://github.com/acme/app"}).Create(
			t.Context(),
			e.cluster,
			e.say,
		),
	)
	again := &Repository{Namespace: team, URL: "https://github.com/Acme/app.git"}
	e.refuses(again.Create(t.Context(), e.cluster, e.say), "the URL is that of Repository team-b/first already")
	other := &Repository{Namespace: "team-b", Name: "first", URL: "https://github.com/acme/other"}
	e.refuses(other.Create(t.Context(), e.cluster, e.say), "exists with another url")
}

func TestCheckRefusesAddressesOfNoRepository(t *testing.T) {
	for address, want := range map[string]string{
		"https://oauth2:s3cret@gitlab.com/acme/app": "a token with --token-file", "git@github.com:acme/app.git": "--url", "https://github.com/acme/%61pp": "--url", "": "--url",
	} {
		if err := (&Repository{URL: address}).Check(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v", address, err)
		}
	}
	r := &Repository{URL: "https://github.com/acme/My_App.git"}
	if err := r.Check(); err != nil || r.Name != "my-app" {
		t.Errorf("the name is %q, %v", r.Name, err)
	}
}

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
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}, Data: map[string][]byte{"token": []byte(value)}}
		e.must(e.kube.Tracker().Add(secret))
	}
	_, err := e.cluster.Own.PipelinesascodeV1alpha1().Repositories(team).Create(t.Context(), &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "app"},
		Spec: pacv1alpha1.RepositorySpec{URL: e.web, GitProvider: &pacv1alpha1.GitProvider{
			Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "access", Key: "token"}, WebhookSecret: &pacv1alpha1.Secret{Name: "hook", Key: "token"},
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
	e.refuses(err, "exists with another key webhook.secret")
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
	if hooks := e.git.Hooks(project); len(hooks) != 121 || hooks[120].Token != e.secret("webhook.secret") || hooks[0].Token != "theirs" {
		t.Errorf("there are %d webhooks", len(hooks))
	}
}

func TestCommandsForGitLabRefuseOtherRepositories(t *testing.T) {
	e := newEnv(t)
	e.must(
		(&Repository{Namespace: team, Name: "hub", URL: "https://github.com/acme/app"}).Create(t.Context(), e.cluster, e.say),
	)
	e.must((&Repository{Namespace: team, Name: "shared", URL: e.web, GitLab: true}).Create(t.Context(), e.cluster, e.say))
	for name, want := range map[string]string{"hub": "no project of a GitLab", "shared": "global Repository", "none": "not found"} {
		e.refuses(Webhook{Namespace: team, Name: name, URL: hookURL}.Add(t.Context(), e.cluster, e.say), want)
	}
}
