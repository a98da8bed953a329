// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// S28: the token in a run's pods can clone their repository and do nothing else there. GitHub
// refuses to create a successful check with it, for the tested commit and for another one. Two
// runs have different tokens, none is the controller's, and GitHub knows none of them after the
// event is settled. They read the repositories that the Repository or the administrator lists, too.
func TestRunTokenCannotWriteChecks(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1, private: true,
		config: [][3]string{{"plumbline", "secret-github-app-scope-extra-repos", "acme/tools"}}})
	others := env.addOtherRepositories()
	before := env.git.tip("main")
	sha := env.pushAccepted(map[string]string{
		".tekton/one.yaml": pipeline("one", "push", held), ".tekton/two.yaml": pipeline("two", "push", held),
	})
	event := env.awaitRunsCreated(sha)
	env.awaitCheck(sha, checkName("one"), "in_progress", soon)
	env.awaitCheck(sha, checkName("two"), "in_progress", soon)
	tokens := map[string]bool{}
	for _, run := range event.Status.Runs {
		secret, err := env.Kube.CoreV1().Secrets(env.ci).Get(env.ctx, run.Secret, metav1.GetOptions{})
		env.must(err)
		env.must(env.lsRemote(secret, env.repo.CloneURL))
		for name, reads := range map[string]bool{"lib": true, "tools": true, "unlisted": false} {
			if err := env.lsRemote(secret, others[name]); (err == nil) != reads {
				t.Errorf("acme/%s: %v, want it to be read: %t", name, err, reads)
			}
		}
		tokens[string(secret.Data["git-provider-token"])] = true
	}
	if len(tokens) != 2 {
		t.Fatalf("two runs have %d tokens", len(tokens))
	}
	checks := len(env.git.checks(sha))
	for token := range tokens {
		for _, commit := range []string{sha, before} {
			verdict := fmt.Sprintf(`{"name":%q,"head_sha":%q,"status":"completed","conclusion":"success"}`, checkName("one"),
				commit)
			if got := env.callWithRunToken(http.MethodPost, "repos/"+repoName+"/check-runs", token,
				verdict); got != http.StatusForbidden {
				t.Errorf("a check by a run's token: %d, want 403", got)
			}
		}
	}
	if n := len(env.git.checks(sha)); n != checks {
		t.Errorf("%d checks became %d", checks, n)
	}
	env.requireNotInNamespace(env.forge.TokensWith("checks", "write"))
	env.releaseRuns(event)
	env.awaitCheck(sha, checkName("one"), "success", soon)
	env.awaitCheck(sha, checkName("two"), "success", soon)
	env.awaitAllSettled(soon)
	env.requireTokenRemoved(event)
	for token := range tokens {
		if got := env.callWithRunToken(http.MethodGet, "repos/"+repoName, token, ""); got != http.StatusUnauthorized {
			t.Errorf("a run's token after its event: %d, want 401", got)
		}
	}
	env.requireNoFailure(sha) // the invariants would take the attempts above for our writes
}

// addOtherRepositories adds private repositories to the App's installation, and returns where they
// are cloned from. The namespace has Repositories for two of them, and lists acme/lib.
func (env *environment) addOtherRepositories() map[string]string {
	env.t.Helper()
	lists := []byte(`{"spec":{"settings":{"github_app_token_scope_repos":["acme/lib"]}}}`)
	env.must(errOf(env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Patch(env.ctx, "app",
		types.MergePatchType, lists, metav1.PatchOptions{})))
	clone, installed := map[string]string{}, []string{repoName}
	for _, name := range []string{"lib", "tools", "unlisted"} {
		other := env.forge.CreateRepo("acme", name, forge.RepoOptions{Private: true})
		env.forge.Commit(other.FullName, "main", forge.Change{Message: "x", Files: map[string]string{"x": name}})
		clone[name], installed = other.CloneURL, append(installed, other.FullName)
		if name != "tools" {
			env.createRepositoryWithURL(env.ci, name, other.HTMLURL)
			env.awaitURL(env.ci, name) // the controller has also read the list then
		}
	}
	env.forge.SetInstalledRepos(env.git.(*onGitHub).installation, installed...)
	return clone
}

// S28: the token of a run expires while no controller runs. The next controller replaces it at
// once, and git can read the repository again. The secret has no token when the run is finished.
func TestRestartedControllerRenewsExpiredToken(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	env := newClaimedEnvironment(t,
		setup{receivers: 1, controllers: 1, private: true, forge: forge.Options{TokenLife: tokenLife}})
	sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("late", "push", held)})
	event := env.awaitRunsCreated(sha)
	env.awaitCheck(sha, checkName("late"), "in_progress", soon)
	env.must(env.lsRemote(env.gitAuthSecret(event), env.repo.CloneURL))
	env.kill(env.controller())
	env.eventually(soon, "the token expires", func() error {
		if env.lsRemote(env.gitAuthSecret(event), env.repo.CloneURL) == nil {
			return errors.New("git can read with it")
		}
		return nil
	})
	env.must(env.controller().Start(env.ctx))
	env.eventually(takeover, "git can read with the secret again",
		func() error { return env.lsRemote(env.gitAuthSecret(event), env.repo.CloneURL) })
	env.releaseRuns(event)
	env.requireOneRunAndCheck(sha, "late")
	env.requireTokenRemoved(event)
}

// callWithRunToken calls GitHub's API with the token of a run.
func (env *environment) callWithRunToken(method, path, token, body string) int {
	env.t.Helper()
	request, err := http.NewRequestWithContext(env.ctx, method, env.forge.APIURL()+path, strings.NewReader(body))
	env.must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	env.must(err)
	env.must(response.Body.Close())
	return response.StatusCode
}

// requireNotInNamespace requires that no Secret and no PipelineRun in the Repository's namespace
// has one of the values.
func (env *environment) requireNotInNamespace(values []string) {
	env.t.Helper()
	secrets, err := env.Kube.CoreV1().Secrets(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	runs, err := env.Tekton.TektonV1().PipelineRuns(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	if len(values) == 0 || len(runs.Items) == 0 {
		env.t.Fatalf("%d values, %d runs: nothing is shown", len(values), len(runs.Items))
	}
	for _, value := range values {
		for _, secret := range secrets.Items {
			for key, data := range secret.Data {
				if strings.Contains(string(data), value) {
					env.t.Errorf("key %s of secret %s has a token that is no run's", key, secret.Name)
				}
			}
		}
		for i := range runs.Items {
			if text, err := json.Marshal(runs.Items[i]); err != nil || strings.Contains(string(text), value) {
				env.t.Errorf("PipelineRun %s has a token that is no run's", runs.Items[i].Name)
			}
		}
	}
}

// S29: a Repository that uses the token of the global one gets its runs and its checks, and the
// token is not in its namespace.
func TestGlobalTokenStaysOutOfTenantNamespace(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, setup{service: gitLab})
	token := env.moveTokenToGlobal()
	env.startReceiver(false)
	env.startController(false)
	env.awaitClaimed()
	sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("tenant", "push", held)})
	event := env.awaitRunsCreated(sha)
	env.awaitCheck(sha, checkName("tenant"), "in_progress", soon)
	if named := env.getRun(event.Status.Runs[0].Name).Annotations[pipelinesascode.GitAuthSecret]; named != "" {
		t.Errorf("the run names secret %q", named)
	}
	env.requireNotInNamespace([]string{token})
	env.releaseRuns(event)
	env.requireOneRunAndCheck(sha, "tenant")
}

// moveTokenToGlobal moves the token from the Repository of the environment's GitLab project to the
// global Repository.
func (env *environment) moveTokenToGlobal() string {
	env.t.Helper()
	secrets, repositories := env.Kube.CoreV1().Secrets, env.Plumbline.PipelinesascodeV1alpha1().Repositories
	own, err := secrets(env.ci).Get(env.ctx, gitlabSecret, metav1.GetOptions{})
	env.must(err)
	env.must(errOf(secrets(env.Namespace).Create(env.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "all-projects"}, Data: own.Data,
	}, metav1.CreateOptions{})))
	env.must(secrets(env.ci).Delete(env.ctx, gitlabSecret, metav1.DeleteOptions{}))
	env.inherited = "all-projects"
	all := &pacv1alpha1.Secret{Name: env.inherited}
	_, err = repositories(env.Namespace).Create(env.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "pipelines-as-code"},
		Spec: pacv1alpha1.RepositorySpec{
			GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab", URL: env.git.url(), Secret: all, WebhookSecret: all},
		},
	}, metav1.CreateOptions{})
	env.must(err)
	bare := []byte(`{"spec":{"git_provider":{"type":"gitlab","url":null,"secret":null,"webhook_secret":null}}}`)
	env.must(errOf(repositories(env.ci).Patch(env.ctx, "app", types.MergePatchType, bare, metav1.PatchOptions{})))
	return string(own.Data["provider.token"])
}

// getGitAuth reads the secret of an event's only run.
func (env *environment) getGitAuth(event *v1alpha1.GitEvent) (*corev1.Secret, error) {
	return env.Kube.CoreV1().Secrets(env.ci).Get(env.ctx, event.Status.Runs[0].Secret, metav1.GetOptions{})
}

func (env *environment) gitAuthSecret(event *v1alpha1.GitEvent) *corev1.Secret {
	env.t.Helper()
	secret, err := env.getGitAuth(event)
	env.must(err)
	return secret
}

// requireTokenRemoved requires that the secret is the run's own, and no longer has a token.
func (env *environment) requireTokenRemoved(event *v1alpha1.GitEvent) {
	env.t.Helper()
	secret, run := env.gitAuthSecret(event), event.Status.Runs[0]
	if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != run.UID {
		env.t.Errorf("after the end the owners of the secret are %v", owners)
	}
	for key, data := range secret.Data {
		if len(data) != 0 && key != ".gitconfig" {
			env.t.Errorf("after the end %s of the secret has %d bytes", key, len(data))
		}
	}
}

// lsRemote runs git ls-remote as a pod does: with a home directory that has the secret's files.
func (env *environment) lsRemote(secret *corev1.Secret, url string) error {
	env.t.Helper()
	home := env.t.TempDir()
	for name, data := range secret.Data {
		env.must(os.WriteFile(filepath.Join(home, name), data, 0o600))
	}
	git := exec.CommandContext(env.ctx, "git", "ls-remote", url)
	git.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := git.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git ls-remote %s: %w: %s", url, err, out)
	}
	if !strings.Contains(string(out), "refs/heads/main") {
		return fmt.Errorf("git ls-remote %s lists %q", url, out)
	}
	return nil
}
