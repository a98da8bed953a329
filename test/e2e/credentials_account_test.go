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

// I3: the API server stops accepting the processes' tokens, and later new ones are in their files,
// as the kubelet puts them there. Deliveries in between are refused with a retry; a run that ends
// in between is reported when the new tokens are there. The Repository gets at most one Kubernetes
// Event, and no process restarts.
func TestServiceAccountTokensRotate(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	env := newEnvironment(t, setup{})
	receiver, err := env.Receiver(env.ctx, false)
	env.must(err)
	controller, err := env.Controller(env.ctx, true, "-late-reports="+lateReports.String())
	env.must(err)
	env.receivers, env.controllers = []*installation.Process{receiver}, []*installation.Process{controller}
	env.useTokenFile(receiver)
	env.useTokenFile(controller)
	env.grantTokens("before")
	env.startProcess(receiver)
	env.startProcess(controller)
	env.awaitClaimed()
	sha, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("long", "push", held)})
	env.deliver(delivery, http.StatusAccepted)
	event := env.awaitRunsCreated(sha)
	env.awaitCheck(sha, checkName("long"), "in_progress", soon)

	// and with it the tokens
	env.must(env.Kube.CoreV1().Secrets(env.Namespace).Delete(env.ctx, "before", metav1.DeleteOptions{}))
	later, second := env.push(map[string]string{".tekton/run.yaml": pipeline("later", "push")})
	// also a copy of a recorded one, because its record has to be read
	env.eventually(soon, "deliveries are refused", func() error {
		if status, answer := env.post(receiver, delivery); status != http.StatusServiceUnavailable {
			return fmt.Errorf("answered %d %s", status, answer)
		}
		return nil
	})
	env.deliver(second, http.StatusServiceUnavailable)
	env.eventually(soon, "the controller is refused", func() error {
		if env.metric(controller, `reason="Unauthorized"`) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	env.releaseRuns(event)

	env.grantTokens("after") // client-go reads the file again once a minute
	env.awaitCheck(sha, checkName("long"), "success", afterFault+soon)
	env.eventually(soon, "deliveries are taken", func() error {
		if status, answer := env.post(receiver, second); status != http.StatusAccepted {
			return fmt.Errorf("answered %d %s", status, answer)
		}
		return nil
	})
	env.awaitCheck(later, checkName("later"), "success", soon)
	for _, event := range env.awaitAllSettled(soon) {
		// one, if a call is refused and the next one is not
		if reported := env.reportedReasons(event.Name); reported[fault.ReasonUnauthorized] > 1 {
			t.Errorf("there are Kubernetes Events about it: %v", reported)
		}
	}
	env.requireNoFailure(sha)
	env.requireNoFailure(later)
	for _, p := range []*installation.Process{receiver, controller} {
		if !p.Running() {
			t.Errorf("%s has ended", p.Name())
		}
	}
}

var inlineToken = regexp.MustCompile(`token: "[^"]*"`)

// useTokenFile makes a process that is not started read its token from a file, as pods do.
func (env *environment) useTokenFile(p *installation.Process) {
	env.t.Helper()
	path := filepath.Join(env.Cluster.Dir(), p.Name()+".kubeconfig")
	text, err := os.ReadFile(path)
	env.must(err)
	with := inlineToken.ReplaceAllString(string(text), fmt.Sprintf("tokenFile: %q", env.tokenFile(p)))
	env.must(os.WriteFile(path, []byte(with), 0o600))
}

func (env *environment) tokenFile(p *installation.Process) string {
	return filepath.Join(env.Cluster.Dir(), p.Name()+".token")
}

// grantTokens writes tokens that are valid as long as a Secret of that name exists. It creates the
// Secret.
func (env *environment) grantTokens(name string) {
	env.t.Helper()
	bound, err := env.Kube.CoreV1().Secrets(env.Namespace).Create(env.ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	env.must(err)
	for account, p := range map[string]*installation.Process{"plumbline-receiver": env.receivers[0],
		"plumbline-controller": env.controller()} {
		granted, err := env.Kube.CoreV1().ServiceAccounts(env.Namespace).CreateToken(
			env.ctx, account, &authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
					APIVersion: "v1", Kind: "Secret", Name: bound.Name, UID: bound.UID,
				}},
			}, metav1.CreateOptions{})
		env.must(err)
		env.must(os.WriteFile(env.tokenFile(p)+".next", []byte(granted.Status.Token), 0o600))
		env.must(os.Rename(env.tokenFile(p)+".next", env.tokenFile(p)))
	}
}
