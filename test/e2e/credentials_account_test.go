// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// I3: the API server does not accept the processes' tokens any more, and a while later there are
// others in their files, as the kubelet puts them there. What is delivered meanwhile is refused
// with "come again"; a run that ends meanwhile is reported when the tokens are there. The
// Repository is told once at most, and nothing is restarted.
func TestI3ServiceAccountTokensRotate(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{})
	receiver, err := w.Receiver(w.ctx, false)
	w.must(err)
	controller, err := w.Controller(w.ctx, true, "-late-reports="+lateReports.String())
	w.must(err)
	w.receivers, w.controllers = []*installation.Process{receiver}, []*installation.Process{controller}
	w.fromFile(receiver)
	w.fromFile(controller)
	w.grantTokens("before")
	w.start(receiver)
	w.start(controller)
	w.claimed()
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("long", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	event := w.created(sha)
	w.checkReaches(sha, checkName("long"), "in_progress", soon)

	w.must(w.Kube.CoreV1().Secrets(w.Namespace).Delete(w.ctx, "before", metav1.DeleteOptions{})) // and with it the tokens
	later, second := w.push(map[string]string{".tekton/run.yaml": pipeline("later", "push")})
	w.eventually(soon, "deliveries are refused", func() error { // even a copy of one that is recorded: its record is read
		if status, answer := w.post(receiver, delivery); status != http.StatusServiceUnavailable {
			return fmt.Errorf("answered %d %s", status, answer)
		}
		return nil
	})
	w.deliver(second, http.StatusServiceUnavailable)
	w.eventually(soon, "the controller is refused", func() error {
		if w.number(controller, `reason="Unauthorized"`) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	w.release(event)

	w.grantTokens("after") // client-go reads the file again once a minute
	w.checkReaches(sha, checkName("long"), "success", afterFault+soon)
	w.eventually(soon, "deliveries are taken", func() error {
		if status, answer := w.post(receiver, second); status != http.StatusAccepted {
			return fmt.Errorf("answered %d %s", status, answer)
		}
		return nil
	})
	w.checkReaches(later, checkName("later"), "success", soon)
	for _, event := range w.settled(soon) {
		if told := w.told(event.Name); told[fault.ReasonUnauthorized] > 1 { // one if a call is refused and the next one is not
			t.Errorf("Kubernetes Events tell of it: %v", told)
		}
	}
	w.neverFailed(sha)
	w.neverFailed(later)
	for _, p := range []*installation.Process{receiver, controller} {
		if !p.Running() {
			t.Errorf("%s has ended", p.Name())
		}
	}
}

var inlineToken = regexp.MustCompile(`token: "[^"]*"`)

// fromFile makes a process that is not started read its token from a file, as pods do.
func (w *world) fromFile(p *installation.Process) {
	w.t.Helper()
	path := filepath.Join(w.Cluster.Dir(), p.Name()+".kubeconfig")
	text, err := os.ReadFile(path)
	w.must(err)
	with := inlineToken.ReplaceAllString(string(text), fmt.Sprintf("tokenFile: %q", w.tokenFile(p)))
	w.must(os.WriteFile(path, []byte(with), 0o600))
}

func (w *world) tokenFile(p *installation.Process) string {
	return filepath.Join(w.Cluster.Dir(), p.Name()+".token")
}

// grantTokens writes tokens that are good as long as a Secret of that name exists, which it makes.
func (w *world) grantTokens(name string) {
	w.t.Helper()
	bound, err := w.Kube.CoreV1().Secrets(w.Namespace).Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.must(err)
	for account, p := range map[string]*installation.Process{"plumbline-receiver": w.receivers[0], "plumbline-controller": w.controller()} {
		granted, err := w.Kube.CoreV1().ServiceAccounts(w.Namespace).CreateToken(w.ctx, account, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "v1", Kind: "Secret", Name: bound.Name, UID: bound.UID,
			}},
		}, metav1.CreateOptions{})
		w.must(err)
		w.must(os.WriteFile(w.tokenFile(p)+".next", []byte(granted.Status.Token), 0o600))
		w.must(os.Rename(w.tokenFile(p)+".next", w.tokenFile(p)))
	}
}
