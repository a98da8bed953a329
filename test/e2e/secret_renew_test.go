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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

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
