// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

const password = `cor"rect horse`

// withParams gives the Repository a param for everything that can fail, and the Secret that it
// needs.
func (w *env) withParams(t *testing.T) {
	t.Helper()
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.Params = &[]pacv1alpha1.Params{
			{Name: "stage", Value: "prod", Filter: `pac.target_branch == "main"`},
			{Name: "password", SecretRef: &pacv1alpha1.Secret{Name: "passwords", Key: "one"}},
			{Name: "unused", SecretRef: &pacv1alpha1.Secret{Name: "none", Key: "none"}},
		}
	}
	w.must(w.kube.Tracker().Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "passwords"}, Data: map[string][]byte{"one": []byte(password)},
	}))
}

// parametrized is hello with a task that is given params.
func parametrized(name string) git.File {
	file := helloFile(name)
	file.Data = []byte(strings.Replace(string(file.Data), "spec:\n",
		"spec:\n  params: [{name: p, value: '{{ stage }} {{ password }} {{ body.a }}'}]\n", 1))
	return file
}

func TestCustomParamsAreRendered(t *testing.T) {
	t.Parallel()
	w := newEnv(t, parametrized("hello"))
	w.withParams(t)
	w.setPayload(`{"a": "b"}`)
	_, _ = w.reconcile()
	runs := w.runs()
	if want := "prod " + password + " b"; len(runs) != 1 || runs[0].Spec.Params[0].Value.StringVal != want {
		t.Fatalf("runs %+v, want the param %s", runs, want)
	}
	plan := w.event().Status.Plan
	stored, err := blob.Expand(plan.Manifests)
	if err != nil || !strings.Contains(string(stored), "hello") || strings.Contains(string(stored), "horse") {
		t.Errorf("%v, the stored plan holds the secret: %s", err, stored)
	}
	runs[0].Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse,
		Reason: "Failed", Message: "login with " + password + " was refused"})
	_, err = w.tekton.TektonV1().PipelineRuns(tenant).UpdateStatus(t.Context(), &runs[0], metav1.UpdateOptions{})
	w.must(err)
	w.settle(corev1.ConditionFalse)
	w.saysNothingOf("horse")
	if text := w.git.checks["1"].Text; !strings.Contains(text, "login with *** was refused") {
		t.Errorf("the check says %s", text)
	}
	if n := w.secrets(); n != 2 {
		t.Errorf("%d secrets are left, want the App's and the team's", n)
	}
}

// saysNothingOf requires that a text is in no report and in no status.
func (w *env) saysNothingOf(text string) {
	w.t.Helper()
	said, err := json.Marshal(w.event())
	w.must(err)
	if everything := string(said) + fmt.Sprintf("%+v", w.git.writes); strings.Contains(everything, text) {
		w.t.Errorf("told: %s", everything)
	}
}

// A refusal that repeats the manifest is reported without the secret in it.
func TestRefusalHidesSecretValues(t *testing.T) {
	t.Parallel()
	w := newEnv(t, parametrized("hello"))
	w.withParams(t)
	w.setPayload(`{"a": "b"}`)
	w.hook = always("create pipelineruns", &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 400, Reason: metav1.StatusReasonBadRequest,
		Message: `admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: validation failed: invalid value: ` + password + `: spec.params`,
	}})
	w.settle(corev1.ConditionTrue)
	w.saysNothingOf("horse")
	if check := w.git.checks["1"]; check.Conclusion != status.Failure ||
		!strings.Contains(check.Text, "invalid value: ***: spec.params") {
		t.Errorf("%s: %s", check.Conclusion, check.Text)
	}
}

// A pipeline that needs a Secret which the team has not created waits, with a check that says what
// to do. Others do not wait.
func TestMissingSecretIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("plain"), parametrized("hello"))
	w.withParams(t)
	w.setPayload(`{"a": "b"}`)
	w.must(w.kube.CoreV1().Secrets(tenant).Delete(t.Context(), "passwords", metav1.DeleteOptions{}))
	_, _ = w.reconcile()
	at := slices.IndexFunc(w.git.writes, func(c status.Check) bool { return strings.HasSuffix(c.Name, "/ hello") })
	if at < 0 || w.git.writes[at].State != status.Queued ||
		!strings.Contains(w.git.writes[at].Text, "secret team/passwords, which does not exist: create it with the key one") {
		t.Fatalf("checks %+v, want one that says which secret to make", w.git.writes)
	}
	if len(w.runs()) != 1 {
		t.Errorf("%d runs, want that of plain", len(w.runs()))
	}
	_, err := w.kube.CoreV1().Secrets(tenant).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "passwords"}, Data: map[string][]byte{"one": []byte(password)},
	}, metav1.CreateOptions{})
	w.must(err)
	w.settle(corev1.ConditionTrue)
	if len(w.runs()) != 2 {
		t.Errorf("%d runs, want both", len(w.runs()))
	}
}

// The plan's own Secret is gone when the run finishes: the verdict is reported, its texts are not.
func TestVerdictDoesNotWaitForASecret(t *testing.T) {
	t.Parallel()
	w := newEnv(t, parametrized("hello"))
	w.withParams(t)
	w.setPayload(`{"a": "b"}`)
	_, _ = w.reconcile()
	w.must(w.kube.CoreV1().Secrets(system).Delete(t.Context(), w.event().Status.Plan.Secret, metav1.DeleteOptions{}))
	w.settle(corev1.ConditionFalse)
	if check := w.git.checks["1"]; check.Conclusion != status.Failure || !strings.Contains(check.Text, "left out") ||
		strings.Contains(check.Text, "ended by the test") {
		t.Errorf("%s: %s", check.Conclusion, check.Text)
	}
}

// A filter that does not compile is a mistake of the Repository's owner: no commit fails for it,
// and nothing runs without it.
func TestInvalidParamFilterFails(t *testing.T) {
	t.Parallel()
	w := newEnv(t, parametrized("hello"))
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.Params = &[]pacv1alpha1.Params{{Name: "stage", Filter: "pac.x =="}}
	}
	_, _ = w.reconcile()
	e := w.event()
	if len(w.git.writes) != 0 || len(w.runs()) != 0 || len(e.Status.Waits) != 1 || e.Status.Waits[0].Class != "Operator" ||
		!strings.Contains(e.Status.Waits[0].Message, "reading the params of Repository team/app: spec.params[0]") {
		t.Errorf("checks %v, waits %+v: want a wait that names the param", w.git.writes, e.Status.Waits)
	}
}

// Whatever call fails while secrets are used, there is one run with the value, and no report or
// status has it.
func TestParamsSurviveAnyFailedCall(t *testing.T) {
	t.Parallel()
	fresh := func(t *testing.T) *env {
		w := newEnv(t, parametrized("hello"))
		w.withParams(t)
		w.setPayload(`{"a": "b"}`)
		return w
	}
	free := fresh(t)
	free.settle(corev1.ConditionTrue)
	for kind, fault := range map[string]outcome{
		"refused": {err: errRefused}, "lost": {err: errors.New("lost"), apply: true}, "killed before": {kill: true},
		"killed after": {kill: true, apply: true},
	} {
		for k := 1; k <= len(free.calls); k++ {
			t.Run(fmt.Sprintf("%s/call %d %s", kind, k, free.calls[k-1]), func(t *testing.T) {
				t.Parallel()
				w := fresh(t)
				w.hook = func(n int, _ string) outcome {
					if n == k {
						return fault
					}
					return outcome{}
				}
				w.settle(corev1.ConditionTrue)
				if runs := w.runs(); len(runs) != 1 || runs[0].Spec.Params[0].Value.StringVal != "prod "+password+" b" ||
					w.git.checks["1"].Conclusion != status.Success {
					t.Errorf("runs %+v, checks %v", runs, w.git.checks)
				}
				w.saysNothingOf("horse")
				if n := w.secrets(); n != 2 {
					t.Errorf("%d secrets are left, want the App's and the team's", n)
				}
			})
		}
	}
}
