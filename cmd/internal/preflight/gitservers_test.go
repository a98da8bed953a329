// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	pacfake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
)

func served(namespace, name, url string, git *pacv1alpha1.GitProvider) *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: pacv1alpha1.RepositorySpec{URL: url, GitProvider: git}}
}

func onGitLab(url string) *pacv1alpha1.GitProvider {
	return &pacv1alpha1.GitProvider{Type: "gitlab", URL: url, Secret: &pacv1alpha1.Secret{Name: "token"}}
}

// After an upgrade the preflight names the Git services that are not called any more, before an
// event waits for one.
func TestGitServersThatAreNotCalledAreFound(t *testing.T) {
	secretless := onGitLab("https://10.0.0.1")
	secretless.Secret = nil
	app := onGitLab("https://10.0.0.1")
	app.Type = "github"
	for name, c := range map[string]struct {
		repository *pacv1alpha1.Repository
		allowed    string
		want       string
	}{
		"of the App":               {served("one", "app", "https://github.com/a/b", nil), "", ""},
		"of the App with a Secret": {served("one", "app", "https://github.com/a/b", app), "", ""},
		"public": {
			served("one", "app", "https://gitlab.com/a/b", onGitLab("https://gitlab.com")), "", "",
		},
		"private": {
			served("one", "app", "https://10.0.0.1/a/b", onGitLab("https://10.0.0.1")), "", "Repository one/app: 10.0.0.1",
		},
		"private by its own URL": {
			served("one", "app", "https://10.0.0.1/a/b", onGitLab("")), "", "Repository one/app: 10.0.0.1",
		},
		"in the cluster": {served("one", "app", "https://x/a/b", onGitLab("http://gitlab.git.svc:8080")), "",
			"gitlab.git.svc:8080 is not called"},
		"in the cluster and listed": {
			served("one", "app", "https://x/a/b", onGitLab("http://gitlab.git.svc:8080")), "gitlab.git.svc", "",
		},
		"private and listed": {
			served("one", "app", "https://x/a/b", onGitLab("http://10.0.0.1")), "10.0.0.0/8", "",
		},
		"what the administrator named": {served("one", "app", "https://10.0.0.1/a/b", secretless), "", ""},
		"the administrator's own": {
			served("plumbline", "app", "https://10.0.0.1/a/b", onGitLab("https://10.0.0.1")), "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c1, _ := checker(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: "plumbline"},
				Data: map[string]string{"git-allowed-hosts": c.allowed}})
			c1.repositories = pacfake.NewSimpleClientset(c.repository).PipelinesascodeV1alpha1()
			got := c1.repositoriesOfTeams(t.Context())
			if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), c.want) ||
				!strings.Contains(got[0].Remedy, "git-allowed-hosts")) {
				t.Errorf("found %v, want %q", got, c.want)
			}
		})
	}
}

func TestManyGitServersAreOneFinding(t *testing.T) {
	c, _ := checker(t)
	var all []runtime.Object
	for i := range maxNamed + 5 {
		all = append(all, served("one", fmt.Sprint("r", i), "https://x/a/b", onGitLab(fmt.Sprintf("https://10.0.0.%d", i))),
			served("two", fmt.Sprint("r", i), "https://x/a/b", onGitLab(fmt.Sprintf("https://10.0.0.%d", i))))
	}
	client := pacfake.NewSimpleClientset(all...)
	c.repositories = client.PipelinesascodeV1alpha1()
	if got := c.repositoriesOfTeams(t.Context()); len(got) != 1 || !strings.Contains(got[0].Problem, "and 5 more") {
		t.Errorf("found %v", got)
	}
	client.PrependReactor("list", "repositories",
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	if got := c.repositoriesOfTeams(t.Context()); len(got) != 1 ||
		!strings.Contains(got[0].Problem, "could not be checked") {
		t.Errorf("found %v", got)
	}
}
