// SPDX-License-Identifier: Apache-2.0

package onboard

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// withoutShared creates the project's Repository, and its Secret without the webhook's secret
// token.
func (e *env) withoutShared() *corev1.Secret {
	e.Helper()
	e.must(e.create(e.token(gitlab.Maintainer)))
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	object, err := e.kube.Tracker().Get(secrets, team, "app-gitlab")
	e.must(err)
	secret := object.(*corev1.Secret).DeepCopy() //nolint:forcetypeassert // of this kind
	secret.ResourceVersion = "7"
	delete(secret.Data, "webhook.secret")
	e.must(e.kube.Tracker().Update(secrets, secret, team))
	return secret
}

func TestWebhookAddStoresANewToken(t *testing.T) {
	e := newEnv(t)
	token := string(e.withoutShared().Data["provider.token"])
	e.must(Webhook{Namespace: team, Name: "app", URL: hookURL}.Add(t.Context(), e.cluster, e.say))
	stored := e.secret("webhook.secret")
	hooks := e.git.Hooks(project)
	if len(stored) != 64 || hooks[0].Token != stored || e.secret("provider.token") != token {
		t.Errorf("the Secret has %q, the webhooks are %+v", stored, hooks)
	}
}

// Projects may share a Secret, and a script may add their webhooks at the same time.
func TestWebhookAddUsesTheTokenThatAnotherCallHasStored(t *testing.T) {
	e := newEnv(t)
	secret := e.withoutShared()
	reads := 0
	e.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if reads++; reads > 2 { // of the two keys
			return false, nil, nil
		}
		stored := secret.DeepCopy()
		stored.Data["webhook.secret"] = []byte("theirs")
		return true, secret, e.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), stored, team)
	})
	e.must(Webhook{Namespace: team, Name: "app", URL: hookURL}.Add(t.Context(), e.cluster, e.say))
	hooks := e.git.Hooks(project)
	if len(hooks) != 1 || hooks[0].Token != "theirs" || e.secret("webhook.secret") != "theirs" {
		t.Errorf("the Secret has %q, the webhooks are %+v", e.secret("webhook.secret"), hooks)
	}
}

func TestWebhookAddStoresNoTokenOverAnother(t *testing.T) {
	e := newEnv(t)
	e.withoutShared()
	e.kube.PrependReactor("update", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		secret := a.(clienttesting.UpdateAction).GetObject().(*corev1.Secret) //nolint:forcetypeassert // of this verb
		if secret.ResourceVersion != "7" {
			t.Errorf("the API server does not see that version %q has changed", secret.ResourceVersion)
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, secret.Name, errors.New("changed"))
	})
	err := Webhook{Namespace: team, Name: "app", URL: hookURL}.Add(t.Context(), e.cluster, e.say)
	e.refuses(err, "changing Secret team-a/app-gitlab", "run the command again")
	if hooks := e.git.Hooks(project); len(hooks) > 0 {
		t.Errorf("the webhooks are %+v", hooks)
	}
}

// An error names the same Secret each time.
func TestSecretOfTheTokenIsReadFirst(t *testing.T) {
	e := newEnv(t)
	s := &secretValues{namespace: team, token: place{"first", "token"}, webhook: place{"another", "secret"}}
	for range 20 {
		if _, _, err := s.read(t.Context(), e.cluster); err == nil || !strings.Contains(err.Error(), "reading Secret team-a/first") {
			t.Fatalf("got %v", err)
		}
	}
}
