// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

var repositoryResource = schema.GroupResource{Group: "pipelinesascode.tekton.dev", Resource: "repositories"}

func TestURLWithoutClaim(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, url, want, message string
	}{
		"a URL that is none":                           {"one", "https://github.com", "False InvalidURL", "spec.url: "},
		"no URL in a tenant's namespace":               {"one", "", "False InvalidURL", "spec.url is empty"},
		"no URL in Plumbline's namespace, for the one": {systemNS, "", "True Global", "The Repository of"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, repo(test.namespace, "app", test.url))
			w.reconcile(test.namespace + "/app")
			w.wantCondition(test.namespace, "app", urlCondition, test.want)
			r := w.repository(test.namespace, "app")
			if got := r.Status.GetCondition(urlCondition).Message; !strings.HasPrefix(got, test.message) {
				t.Errorf("got message %q, want it to start with %q", got, test.message)
			}
			if r.Status.ObservedGeneration != 3 {
				t.Errorf("observed generation %d, want 3", r.Status.ObservedGeneration)
			}
			if diff := cmp.Diff([]string{"update repositories/status"}, w.writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedClaimIsAnOperatorFault(t *testing.T) {
	for name, err := range map[string]error{
		"no right": apierrors.NewForbidden(claimResource, "x",
			errors.New(`User "system:serviceaccount:plumbline:plumbline-controller" cannot create resource "repositoryclaims"`)),
		"a policy says no": apierrors.NewForbidden(claimResource, "x",
			errors.New("ValidatingAdmissionPolicy 'p' denied request: no")),
		"the schema refuses it": apierrors.NewInvalid(schema.GroupKind{Kind: "RepositoryClaim"}, "x", nil),
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, repo("one", "app", appURL))
			w.failOnce("create", "repositoryclaims", err)
			if after := w.reconcile("one/app"); after != fault.OperatorRetry {
				t.Errorf("wakes after %v, want %v", after, fault.OperatorRetry)
			}
			c := w.repository("one", "app").Status.GetCondition(urlCondition)
			if c == nil || !c.IsFalse() || c.Reason == "" {
				t.Errorf("got condition %+v, want it false with a reason", c)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	settled := waiting("settled", operatorWait("Settled", time.Hour))
	settled.Status.Phase = v1alpha1.PhaseSettled
	transient := operatorWait("Down", time.Hour)
	transient.Class = "Transient"
	twoSteps := operatorWait("Early", time.Minute)
	twoSteps.Step = "plan"
	for name, test := range map[string]struct {
		events []*v1alpha1.GitEvent
		want   string
	}{
		"no event":                          {nil, trueNoProblem},
		"events that wait for no operator":  {[]*v1alpha1.GitEvent{waiting("a"), waiting("b", transient)}, trueNoProblem},
		"a settled event waits for nothing": {[]*v1alpha1.GitEvent{settled}, trueNoProblem},
		"the event that waits": {
			[]*v1alpha1.GitEvent{waiting("a"), waiting("b", operatorWait("NoAccess", 0))}, "False NoAccess",
		},
		"the newest problem of several events": {
			[]*v1alpha1.GitEvent{waiting("a", operatorWait("New", 2)), waiting("b", operatorWait("Old", 1))}, "False New",
		},
		"the newest problem of one event": {
			[]*v1alpha1.GitEvent{waiting("a", twoSteps, operatorWait("Late", time.Hour), transient)}, "False Late",
		},
		"of equally new ones the first by name": {
			[]*v1alpha1.GitEvent{waiting("b", operatorWait("B", 0)), waiting("a", operatorWait("A", 0))}, "False A",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // in both orders
				w := newEnv(t, repo("one", "app", appURL))
				w.events = test.events
				w.reconcile("one/app")
				w.wantCondition("one", "app", credentials, test.want)
				w.wantCondition("one", "app", urlCondition, trueOwned)
				slices.Reverse(test.events)
			}
		})
	}
}

func TestCredentialsCopyTheMessageAndRecover(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.events = []*v1alpha1.GitEvent{waiting("a", operatorWait("NoAccess", 0))}
	w.reconcile("one/app")
	if got := w.repository("one", "app").Status.GetCondition(credentials).Message; got != "message of NoAccess" {
		t.Errorf("got message %q, want the event's", got)
	}
	w.wantCondition("one", "app", ready, "False NoAccess")
	w.events = nil
	w.reconcile("one/app")
	w.wantCondition("one", "app", credentials, trueNoProblem)
	w.wantCondition("one", "app", ready, "True ")
}

func TestCredentialsWaitForTheCacheOfEvents(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.synced = false
	if after := w.reconcile("one/app"); after != syncWait {
		t.Errorf("wakes after %v, want %v", after, syncWait)
	}
	if c := w.repository("one", "app").Status.GetCondition(credentials); c != nil {
		t.Errorf("got %+v of a cache that is empty because it is young", c)
	}
	w.wantCondition("one", "app", urlCondition, trueOwned)
}

func TestKubernetesEventsReportChangesOfReasons(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL), claimed(appURL, "two", "app", nil))
	w.reconcile("one/app", "one/app")
	want := warning + " Claimed " + w.repository("one", "app").Status.GetCondition(urlCondition).Message
	if diff := cmp.Diff([]string{want}, w.published()); diff != "" {
		t.Errorf("losing the URL (-want +got):\n%s", diff)
	}
	w.events = []*v1alpha1.GitEvent{waiting("a", operatorWait("NoAccess", 0))}
	w.reconcile("one/app")
	w.events = []*v1alpha1.GitEvent{
		waiting("b", v1alpha1.Wait{Step: "plan", Class: "Operator", Reason: "NoAccess", Message: "in other words"}),
	}
	w.reconcile("one/app")
	if diff := cmp.Diff([]string{"Warning NoAccess message of NoAccess"}, w.published()); diff != "" {
		t.Errorf("a problem whose words change (-want +got):\n%s", diff)
	}
	w.events = nil
	w.reconcile("one/app")
	if diff := cmp.Diff([]string{"Normal NoProblem No open event waits for an operator."}, w.published()); diff != "" {
		t.Errorf("recovering (-want +got):\n%s", diff)
	}
}

func TestStatusWriteCarriesTheLiveVersionAndIsNotRepeated(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.failOnce("update", "repositories", apierrors.NewConflict(repositoryResource, "app", errors.New("modified")))
	w.client.ClearActions()
	err := w.r.Reconcile(context.Background(), "one/app")
	if !apierrors.IsConflict(err) || !fault.Is(err, fault.Conflict) {
		t.Fatalf("got %v, want the conflict", err)
	}
	var versions []string
	for _, action := range w.client.Actions() {
		if update, ok := action.(clienttesting.UpdateAction); ok && action.GetResource().Resource == "repositories" {
			versions = append(versions, update.GetObject().(*pacv1alpha1.Repository).ResourceVersion)
		}
	}
	if diff := cmp.Diff([]string{"7"}, versions); diff != "" {
		t.Errorf("resource versions of the status writes (-want +got):\n%s", diff)
	}
	if got := w.published(); len(got) != 0 {
		t.Errorf("Events %q of a status that was not written", got)
	}
	w.reconcile("one/app")
	w.wantCondition("one", "app", urlCondition, trueOwned)
}

func TestOnlyTheLeaderReconciles(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.r.Demote(pkgreconciler.UniversalBucket())
	w.client.ClearActions()
	if err := w.r.Reconcile(context.Background(), "one/app"); !controller.IsSkipKey(err) {
		t.Errorf("got %v, want the key skipped", err)
	}
	if got := w.client.Actions(); len(got) != 0 {
		t.Errorf("called the API server: %v", got)
	}
}

// A field without effect is named, and so is one that denies events because it cannot be evaluated
// (S13).
func TestSettingsWithoutEffectAreNamed(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.reconcile("one/app")
	if c := w.repository("one", "app").Status.GetCondition(pacv1alpha1.RepositorySettings); c != nil {
		t.Errorf("a Repository that sets nothing of the kind has the condition %+v", c)
	}
	for _, step := range []struct {
		change func(*pacv1alpha1.RepositorySpec)
		want   string
		says   []string
	}{
		{func(s *pacv1alpha1.RepositorySpec) {
			rules := make([]pacv1alpha1.Incoming, pacv1alpha1.MaxIncomingRules+1)
			s.Incomings = &rules
		}, "False NotActedOn", []string{"incoming[64]"}},
		{func(s *pacv1alpha1.RepositorySpec) {
			s.GitProvider = &pacv1alpha1.GitProvider{Type: "gitea"}
			s.Settings = &pacv1alpha1.Settings{Policy: &pacv1alpha1.Policy{}}
		}, "False NotEvaluated", []string{"settings.policy", "incoming"}},
		{func(s *pacv1alpha1.RepositorySpec) { s.Settings = &pacv1alpha1.Settings{GitOpsCommandPrefix: "my ci"} },
			"False BadCommandPrefix", []string{"settings.gitops_command_prefix", "incoming"}},
		{func(s *pacv1alpha1.RepositorySpec) { s.Settings.Policy = &pacv1alpha1.Policy{} }, "False NotEvaluated",
			[]string{"settings.gitops_command_prefix", "settings.policy"}},
		{func(s *pacv1alpha1.RepositorySpec) { s.GitProvider, s.Settings, s.Incomings = nil, nil, nil }, "True NoProblem",
			nil},
		{func(s *pacv1alpha1.RepositorySpec) { s.Settings = &pacv1alpha1.Settings{GitOpsCommandPrefix: "/"} },
			"False BadCommandPrefix", []string{"/ci test"}},
		{func(s *pacv1alpha1.RepositorySpec) { s.Settings.GitOpsCommandPrefix = "/ci" }, "True NoProblem", nil},
		{func(s *pacv1alpha1.RepositorySpec) { s.Settings.QueuePriority = `event ==` }, "False BadExpression",
			[]string{"settings.queue_priority: 1:9: ", "priority 0"}},
		{func(s *pacv1alpha1.RepositorySpec) { s.Settings.QueuePriority = `event == "push"` }, "False BadExpression",
			[]string{"whole number"}},
		{func(s *pacv1alpha1.RepositorySpec) {
			s.Settings.QueuePriority, s.Settings.GitOpsCommandPrefix = `urgent == "yes" ? 5 : 0`, "my ci"
		}, "False BadCommandPrefix", []string{"settings.gitops_command_prefix", "urgent is not defined"}},
		{func(s *pacv1alpha1.RepositorySpec) {
			s.Settings.GitOpsCommandPrefix, s.Params = "", &[]pacv1alpha1.Params{{Name: "urgent"}}
		}, "True NoProblem", nil},
		{func(s *pacv1alpha1.RepositorySpec) { s.Settings.GithubAppTokenScopeRepos = []string{"acme/lib"} },
			"False TokenScopeRefused", []string{"secret-github-app-token-scoped", "own code wait"}},
		{func(s *pacv1alpha1.RepositorySpec) { s.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab"} },
			"False NotActedOn", []string{"github_app_token_scope_repos"}},
	} {
		changed := w.repository("one", "app")
		step.change(&changed.Spec)
		if _, err := w.client.PipelinesascodeV1alpha1().Repositories("one").Update(t.Context(), changed,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.reconcile("one/app")
		w.wantCondition("one", "app", pacv1alpha1.RepositorySettings, step.want)
		w.wantCondition("one", "app", ready, "True ") // it is served
		for _, field := range step.says {
			if got := w.repository("one", "app").Status.GetCondition(pacv1alpha1.RepositorySettings).Message; !strings.Contains(
				got, field) {
				t.Errorf("%q does not name %s", got, field)
			}
		}
	}
	if published := strings.Join(w.published(), "\n"); !strings.Contains(published,
		"Warning NotEvaluated settings.policy restricts") {
		t.Errorf("message: %s", published)
	}
}
