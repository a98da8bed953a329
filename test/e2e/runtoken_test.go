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

// S28: what a run's pods find clones their repository and can do no more there. With it somebody
// asks GitHub for a successful check, for the commit that is tested and for another one: refused.
// Two runs do not have the same, none has the controller's, and once the event is settled GitHub
// knows none of them.
func TestARunsTokenWritesNoVerdict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, private: true})
	w.claimed()
	before := w.git.tip("main")
	sha, delivery := w.push(map[string]string{
		".tekton/one.yaml": pipeline("one", "push", held), ".tekton/two.yaml": pipeline("two", "push", held),
	})
	w.deliver(delivery, http.StatusAccepted)
	event := w.created(sha)
	w.checkReaches(sha, checkName("one"), "in_progress", soon)
	w.checkReaches(sha, checkName("two"), "in_progress", soon)
	tokens := map[string]bool{}
	for _, run := range event.Status.Runs {
		secret, err := w.Kube.CoreV1().Secrets(w.ci).Get(w.ctx, run.Secret, metav1.GetOptions{})
		w.must(err)
		w.must(w.lsRemote(secret, w.repo.CloneURL))
		tokens[string(secret.Data["git-provider-token"])] = true
	}
	if len(tokens) != 2 {
		t.Fatalf("two runs have %d tokens", len(tokens))
	}
	checks := len(w.git.checks(sha))
	for token := range tokens {
		for _, commit := range []string{sha, before} {
			verdict := fmt.Sprintf(`{"name":%q,"head_sha":%q,"status":"completed","conclusion":"success"}`, checkName("one"), commit)
			if got := w.asRun(http.MethodPost, "repos/"+repoName+"/check-runs", token, verdict); got != http.StatusForbidden {
				t.Errorf("a check by a run's token: %d, want 403", got)
			}
		}
	}
	if n := len(w.git.checks(sha)); n != checks {
		t.Errorf("%d checks became %d", checks, n)
	}
	w.nowhereInTheNamespace(w.forge.TokensWith("checks", "write"))
	w.release(event)
	w.checkReaches(sha, checkName("one"), "success", soon)
	w.checkReaches(sha, checkName("two"), "success", soon)
	w.settled(soon)
	w.leftSecret(event)
	for token := range tokens {
		if got := w.asRun(http.MethodGet, "repos/"+repoName, token, ""); got != http.StatusUnauthorized {
			t.Errorf("a run's token after its event: %d, want 401", got)
		}
	}
	w.neverFailed(sha) // the invariants would take what was tried above for writes of ours
}

// S28: the token of a run expires while no controller runs. The next controller replaces it at
// once, and git can read the repository again. The secret has no token when the run is finished.
func TestRestartedControllerRenewsExpiredToken(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, private: true, forge: forge.Options{TokenLife: tokenLife}})
	w.claimed()
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("late", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	event := w.created(sha)
	w.checkReaches(sha, checkName("late"), "in_progress", soon)
	w.must(w.lsRemote(w.secret(event), w.repo.CloneURL))
	w.kill(w.controller())
	w.eventually(soon, "the token expires", func() error {
		if w.lsRemote(w.secret(event), w.repo.CloneURL) == nil {
			return errors.New("git can read with it")
		}
		return nil
	})
	w.must(w.controller().Start(w.ctx))
	w.eventually(takeover, "git can read with the secret again", func() error { return w.lsRemote(w.secret(event), w.repo.CloneURL) })
	w.release(event)
	w.endsOnce(sha, "late")
	w.leftSecret(event)
}

// asRun calls GitHub's API with the token of a run.
func (w *world) asRun(method, path, token, body string) int {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.ctx, method, w.forge.APIURL()+path, strings.NewReader(body))
	w.must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	w.must(err)
	w.must(response.Body.Close())
	return response.StatusCode
}

// nowhereInTheNamespace requires that no Secret and no PipelineRun beside the Repository holds one
// of the values.
func (w *world) nowhereInTheNamespace(values []string) {
	w.t.Helper()
	secrets, err := w.Kube.CoreV1().Secrets(w.ci).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	runs, err := w.Tekton.TektonV1().PipelineRuns(w.ci).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	if len(values) == 0 || len(runs.Items) == 0 {
		w.t.Fatalf("%d values, %d runs: nothing is shown", len(values), len(runs.Items))
	}
	for _, value := range values {
		for _, secret := range secrets.Items {
			for key, data := range secret.Data {
				if strings.Contains(string(data), value) {
					w.t.Errorf("key %s of secret %s has a token that is no run's", key, secret.Name)
				}
			}
		}
		for i := range runs.Items {
			if text, err := json.Marshal(runs.Items[i]); err != nil || strings.Contains(string(text), value) {
				w.t.Errorf("PipelineRun %s has a token that is no run's", runs.Items[i].Name)
			}
		}
	}
}

// S29: a Repository that uses the global one's token gets its runs and its verdicts, and the token
// is not in its namespace.
func TestTheGlobalTokenIsNotWrittenIntoATenantsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{service: gitLab})
	token := w.inheritsToken()
	w.startReceiver(false)
	w.startController(false)
	w.claimed()
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("tenant", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	event := w.created(sha)
	w.checkReaches(sha, checkName("tenant"), "in_progress", soon)
	if named := w.run(event.Status.Runs[0].Name).Annotations[pipelinesascode.GitAuthSecret]; named != "" {
		t.Errorf("the run names secret %q", named)
	}
	w.nowhereInTheNamespace([]string{token})
	w.release(event)
	w.endsOnce(sha, "tenant")
}

// inheritsToken moves the token from the Repository of the world's GitLab project to the global
// Repository.
func (w *world) inheritsToken() string {
	w.t.Helper()
	secrets, repositories := w.Kube.CoreV1().Secrets, w.Plumbline.PipelinesascodeV1alpha1().Repositories
	own, err := secrets(w.ci).Get(w.ctx, gitlabSecret, metav1.GetOptions{})
	w.must(err)
	_, err = secrets(w.Namespace).Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "all-projects"}, Data: own.Data}, metav1.CreateOptions{})
	w.must(err)
	w.must(secrets(w.ci).Delete(w.ctx, gitlabSecret, metav1.DeleteOptions{}))
	w.inherited = "all-projects"
	all := &pacv1alpha1.Secret{Name: w.inherited}
	_, err = repositories(w.Namespace).Create(w.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "pipelines-as-code"},
		Spec:       pacv1alpha1.RepositorySpec{GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab", URL: w.git.url(), Secret: all, WebhookSecret: all}},
	}, metav1.CreateOptions{})
	w.must(err)
	bare := []byte(`{"spec":{"git_provider":{"type":"gitlab","url":null,"secret":null,"webhook_secret":null}}}`)
	_, err = repositories(w.ci).Patch(w.ctx, "app", types.MergePatchType, bare, metav1.PatchOptions{})
	w.must(err)
	return string(own.Data["provider.token"])
}

// gitAuth reads the secret of an event's only run.
func (w *world) gitAuth(event *v1alpha1.GitEvent) (*corev1.Secret, error) {
	return w.Kube.CoreV1().Secrets(w.ci).Get(w.ctx, event.Status.Runs[0].Secret, metav1.GetOptions{})
}

func (w *world) secret(event *v1alpha1.GitEvent) *corev1.Secret {
	w.t.Helper()
	secret, err := w.gitAuth(event)
	w.must(err)
	return secret
}

// leftSecret requires that the secret is the run's own, and has no token any more.
func (w *world) leftSecret(event *v1alpha1.GitEvent) {
	w.t.Helper()
	secret, run := w.secret(event), event.Status.Runs[0]
	if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != run.UID {
		w.t.Errorf("after the end the owners of the secret are %v", owners)
	}
	for key, data := range secret.Data {
		if len(data) != 0 && key != ".gitconfig" {
			w.t.Errorf("after the end %s of the secret has %d bytes", key, len(data))
		}
	}
}

// lsRemote is what a pod does: git, whose home directory holds the secret's files, asks what it may
// fetch.
func (w *world) lsRemote(secret *corev1.Secret, url string) error {
	w.t.Helper()
	home := w.t.TempDir()
	for name, data := range secret.Data {
		w.must(os.WriteFile(filepath.Join(home, name), data, 0o600))
	}
	git := exec.CommandContext(w.ctx, "git", "ls-remote", url)
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
