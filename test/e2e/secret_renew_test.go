// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// A run goes on for more than two token lives, and the controller that leads is killed meanwhile: git, with the files of
// the run's secret, can read the repository at every moment, and no other one. The renewals tell nobody. A secret that
// somebody deletes comes back, and when the run is over it has no token.
func TestASecretWorksAsLongAsItsRun(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, standby: true, proxied: true, private: true, forge: forge.Options{TokenLife: tokenLife}})
	w.claimed()
	leader := w.controller()
	w.eventually(soon, "the first controller leads", func() error { return w.made(leader, "list eventpayloads") })
	standby := w.startController(true)
	other := w.forge.CreateRepo("acme", "other", forge.RepoOptions{Private: true})
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("long", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	event := w.created(sha)
	w.forge.SetInstalledRepos(event.Spec.InstallationID, repoName, other.FullName)
	w.checkReaches(sha, checkName("long"), "in_progress", soon)
	w.eventually(soon, "the run is annotated", func() error { return w.made(leader, "patch pipelineruns") })

	reported, tokens := len(w.git.log().writes), map[string]bool{}
	killed := false
	for over := time.Now().Add(longRun); time.Now().Before(over); w.tick() {
		secret, err := w.gitAuth(event)
		w.must(err)
		if err := w.lsRemote(secret, w.repo.CloneURL); err != nil {
			t.Fatalf("after %d tokens: %v", len(tokens), err)
		}
		if tokens[string(secret.Data[".git-credentials"])] = true; len(tokens) == 2 && !killed {
			killed = true
			w.must(leader.Kill())
		}
	}
	if err := w.lsRemote(w.secret(event), other.CloneURL); err == nil {
		t.Error("the token reads another repository of the installation")
	}
	if most := int(2*longRun/tokenLife) + 2; len(tokens) > most {
		t.Errorf("%d tokens in %v, want one for each half of a life and never more than %d", len(tokens), longRun, most)
	}
	w.must(w.made(standby, "patch secrets"))
	if n := len(w.git.log().writes) - reported; n != 0 {
		t.Errorf("renewals made %d reports", n)
	}
	if told := w.told(event.Name); len(told) != 0 {
		t.Errorf("renewals made Kubernetes Events %v", told)
	}

	w.must(w.Kube.CoreV1().Secrets(w.ci).Delete(w.ctx, event.Status.Runs[0].Secret, metav1.DeleteOptions{}))
	w.worksAgain(event)
	w.release(event)
	w.endsOnce(sha, "long")
	w.leftSecret(event)
}

// A token that expired while no controller was running is replaced as soon as one is.
func TestALateRenewalIsMadeAtOnce(t *testing.T) {
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
			return errors.New("git may still read")
		}
		return nil
	})
	w.must(w.controller().Start(w.ctx))
	w.worksAgain(event)
	w.release(event)
	w.endsOnce(sha, "late")
	w.leftSecret(event)
}

// SIGTERM while the token in a run's secret is renewed. Whether the patch lands or not, git can read with the next controller, and when the
// run is over the secret has no token.
func TestTerminatedWhileATokenIsRenewed(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	for name, write := range map[string]cluster.Action{
		"lands-while-draining": cluster.Delay(signalled), "lands-without-an-answer": cluster.ApplyThenDrop(), "does-not-land": cluster.Drop(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{receivers: 1, controllers: 1, proxied: true, private: true, forge: forge.Options{TokenLife: tokenLife}})
			w.claimed()
			sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("renewed", "push", held)})
			w.deliver(delivery, http.StatusAccepted)
			event := w.created(sha)
			w.checkReaches(sha, checkName("renewed"), "in_progress", soon)
			w.eventually(soon, "the run is annotated", func() error { return w.made(w.controller(), "patch pipelineruns") })
			gone, renewal := w.endsAt(w.controller(), func(c cluster.Call) bool {
				return c.Is("patch", "secrets") && c.Namespace == w.ci && c.Name == event.Status.Runs[0].Secret
			}, write)
			waitFor(w, gone, "the controller ends")
			if renewal.Hits() == 0 {
				t.Error("it ended before it renewed the token")
			}
			w.startController(true)
			w.worksAgain(event)
			w.release(event)
			w.endsOnce(sha, "renewed")
			w.leftSecret(event)
		})
	}
}

// tick waits for the next moment to look.
func (w *world) tick() {
	w.t.Helper()
	select {
	case <-time.After(tokenLife / 20):
	case <-w.ctx.Done():
		w.t.Fatal(w.ctx.Err())
	}
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

func (w *world) worksAgain(event *v1alpha1.GitEvent) {
	w.t.Helper()
	w.eventually(takeover, "git may read with the secret again", func() error {
		secret, err := w.gitAuth(event)
		if err != nil {
			return err
		}
		return w.lsRemote(secret, w.repo.CloneURL)
	})
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

// lsRemote is what a pod does: git, whose home directory holds the secret's files, asks what it may fetch.
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
