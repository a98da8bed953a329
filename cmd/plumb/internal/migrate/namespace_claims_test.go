// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestNamespaceSaysWhatBecameOfRepositories(t *testing.T) {
	second, refused := app("team-a"), repository("team-a", "refused", "https://git.example.com/acme/refused")
	second.Name = "second"
	refused.Status.Conditions = append(refused.Status.Conditions, apis.Condition{
		Type:    pacv1alpha1.RepositoryCredentials,
		Status:  corev1.ConditionFalse,
		Reason:  "CredentialsMissing",
		Message: "no token",
	})
	lab := repository("team-a", "lab", "https://gitlab.example.com/acme/lab.git")
	lab.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab"}
	hub := repository("team-a", "hub", "https://github.com/acme/hub")
	hub.Spec.GitProvider = &pacv1alpha1.GitProvider{Secret: &pacv1alpha1.Secret{Name: "token"}}
	e := newMoving(t, second, app("team-a"), refused, lab, hub)
	if err := e.move(forward, "team-a"); err != nil {
		t.Fatal(err)
	}
	e.says("Repository team-a/refused claimed, but CredentialsMissing: no token",
		"Repository team-a/second is not served: its URL belongs to Repository team-a/app", "https://hooks.example.com/",
		"https://gitlab.example.com/acme/lab/-/hooks", "enter the token again before you save",
		"https://github.com/acme/hub/settings/hooks")
}

// A call that is killed after it has changed the list is repeated: it waits for the claims.
func TestNamespaceAllBackContinues(t *testing.T) {
	e, lists := newMoving(t, app("team-a")), 0
	e.own.PrependReactor("list", "repositoryclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists++
		held := &v1alpha1.RepositoryClaimList{Items: []v1alpha1.RepositoryClaim{*claim(app("team-a"))}}
		return lists < 4, held, nil
	})
	if err := e.move(func(n *Namespaces) { n.All, n.Back = true, true }); err != nil || lists < 4 {
		t.Errorf("after %d lists of claims: %v", lists, err)
	}
	e.says("Repository team-a/app released")
	err := e.move(func(n *Namespaces) { n.All, n.Back = true, true })
	if err == nil || !strings.Contains(err.Error(), "no namespace is at Plumbline") {
		t.Errorf("when all are back: %v", err)
	}
}

func TestNamespaceNamesRepositoriesThatAreNotClaimed(t *testing.T) {
	e := newMoving(t)
	if err := e.own.Tracker().Add(app("team-a")); err != nil {
		t.Fatal(err)
	}
	err := e.move(forward, "team-a")
	if err == nil || !strings.Contains(err.Error(), "the URLs of 1 Repositories are not claimed after 200ms, for example that of team-a/app") {
		t.Error(err)
	}
}
