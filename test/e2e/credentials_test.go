// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// secretEnv is an environment for tests of the Secret with the credentials of the Git service and
// of its webhook. It has one receiver, and one controller after startDefaultController.
type secretEnv struct {
	*environment
	namespace, name string
	// data is what the Secret has to hold, and key of it what deliveries are signed with.
	data map[string]string
	key  string
}

func newSecretEnv(t *testing.T, on kind) *secretEnv {
	t.Helper()
	s := &secretEnv{
		environment: newEnvironment(t, setup{service: on, receivers: 1, controllers: 1}), data: map[string]string{},
	}
	s.awaitClaimed()
	s.kill(s.controller())
	s.controllers = nil
	s.namespace, s.name, s.key = s.git.secret(s.environment)
	secret, err := s.Kube.CoreV1().Secrets(s.namespace).Get(s.ctx, s.name, metav1.GetOptions{})
	s.must(err)
	for key, value := range secret.Data {
		s.data[key] = string(value)
	}
	return s
}

// refuseCredentials makes the service refuse the credentials permanently, and returns the values
// that the Secret needs instead.
func (s *secretEnv) refuseCredentials() map[string]string {
	if g, ok := s.git.(*onGitLab); ok {
		g.RevokeToken(g.token.Value)
		return map[string]string{"provider.token": g.CreateToken(gitlab.NewToken{Project: projectName}).Value}
	}
	fresh := s.replaceKey()
	s.forge.RevokeTokens()
	return fresh
}

// replaceKey gives the App another private key and removes the one before.
func (s *secretEnv) replaceKey() map[string]string {
	fresh := forge.New(forge.Options{}).CreateApp(1, "key", "", "x").PrivateKeyPEM
	s.forge.ReplaceKey(s.App.ID, fresh)
	return map[string]string{"github-private-key": fresh}
}

// updateSecret writes the values that the service wants into the Secret, and the extra ones over
// them; nil removes a value.
func (s *secretEnv) updateSecret(extra map[string]string) {
	s.t.Helper()
	s.must(s.Kube.CoreV1().Secrets(s.namespace).Delete(s.ctx, s.name, metav1.DeleteOptions{}))
	if extra != nil {
		s.createSecret(extra)
	}
}

// createSecret is updateSecret for a missing Secret.
func (s *secretEnv) createSecret(extra map[string]string) {
	s.t.Helper()
	data := maps.Clone(s.data)
	maps.Copy(data, extra)
	s.must(errOf(s.Kube.CoreV1().Secrets(s.namespace).Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.name}, StringData: data,
	}, metav1.CreateOptions{})))
}

// startDefaultController starts the controller with the default wait for operators: only a change
// that it sees makes it faster.
func (s *secretEnv) startDefaultController() *installation.Process {
	s.t.Helper()
	return s.startController(true, "-credential-look="+credentialLook.String())
}

// pushFile pushes .tekton/run.yaml and delivers the push.
func (s *secretEnv) pushFile(file string) string {
	s.t.Helper()
	sha := s.pushAccepted(map[string]string{".tekton/run.yaml": file})
	return sha
}

// requireSuccess requires that a pipeline's check succeeds within B8's time.
func (s *secretEnv) requireSuccess(sha, pipeline string) {
	s.t.Helper()
	s.awaitCheck(sha, checkName(pipeline), "success", ruleLimit())
	s.requireNoFailure(sha)
}
