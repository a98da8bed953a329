// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

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
