// SPDX-License-Identifier: Apache-2.0

package onboard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
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
		"it is unknown":        {func(*env) string { return "glpat-unknown" }, "GitLab refuses the token"},
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
		if err := (&Repository{URL: address}).Check(); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v", address, err)
		}
	}
	r := &Repository{URL: "https://github.com/acme/My_App.git"}
	if err := r.Check(); err != nil || r.Name != "my-app" {
		t.Errorf("the name is %q, %v", r.Name, err)
	}
}
