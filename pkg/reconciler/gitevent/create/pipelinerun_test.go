// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

var (
	errDenied = apierrors.NewForbidden(pipelinev1.Resource("pipelineruns"), "run",
		errors.New(`admission webhook "policy" denied the request: no`))
	errQuota = apierrors.NewForbidden(pipelinev1.Resource("pipelineruns"), "run",
		errors.New("exceeded quota: pipelines"))
	errRefused = errors.New("connection refused")
	errBusy    = apierrors.NewTooManyRequests("slow down", 1)
)

// pipelineRun returns a PipelineRun. The run keys of the tests' event begin with "system/push/".
func pipelineRun(uid types.UID, key string) *pipelinev1.PipelineRun {
	return &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "run", UID: uid, Annotations: map[string]string{plumbline.RunKeyAnnotation: key},
	}}
}

// client returns the client of an API server with objects, which fails some verbs.
func client(fails map[string]error, objects ...runtime.Object) tektonv1.PipelineRunInterface {
	tekton := tektonfake.NewSimpleClientset(objects...)
	tekton.PrependReactor("*", "pipelineruns", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := fails[action.GetVerb()]
		return err != nil, nil, err
	})
	return tekton.TektonV1().PipelineRuns("team")
}

// C3, C9, C10: an earlier attempt may have created the PipelineRun and died. Admission judges a
// creation before the API server checks whether the name is taken, so a refusal says nothing about
// it.
func TestCreateAdoptsItsOwnPipelineRun(t *testing.T) {
	t.Parallel()
	const key = "system/push/.tekton/run.yaml#0"
	ours, foreign := pipelineRun("before", key), pipelineRun("foreign", "system/another/.tekton/run.yaml#0")
	secretQuota := fault.FromKube(fault.VerbCreate, errQuota).AsOwn()
	for name, test := range map[string]struct {
		there   *pipelinev1.PipelineRun
		fails   map[string]error
		prepare error
		want    types.UID
		reason  string
		class   fault.Class
	}{
		"nothing is there":               {nil, nil, nil, "", "", 0},
		"it is there":                    {ours, nil, nil, "before", "", 0},
		"another one has its name":       {foreign, nil, nil, "", "ForeignPipelineRun", fault.Operator},
		"it is there and cannot be read": {ours, map[string]error{"get": errBusy}, nil, "", "", fault.Throttled},
		"it exhausts the quota itself":   {ours, map[string]error{"create": errQuota}, nil, "before", "", 0},
		"others exhaust the quota": {
			nil, map[string]error{"create": errQuota}, nil, "", fault.ReasonQuota, fault.Throttled,
		},
		"a policy allows no second one": {ours, map[string]error{"create": errDenied}, nil, "before", "", 0},
		"a policy allows none": {
			nil, map[string]error{"create": errDenied}, nil, "", "AdmissionDenied", fault.Invalid,
		},
		"a policy, and another has a name": {
			foreign, map[string]error{"create": errDenied}, nil, "", "AdmissionDenied", fault.Invalid,
		},
		"a quota of secrets":     {ours, nil, secretQuota, "before", "", 0},
		"no secret and no run":   {nil, nil, secretQuota, "", fault.ReasonQuota, fault.Throttled},
		"an outage says nothing": {ours, map[string]error{"create": errRefused}, nil, "", "", fault.Transient},
		"another process has the event": {ours, nil, &fault.Error{Class: fault.Conflict, Reason: attempt.ReasonPaused}, "",
			attempt.ReasonPaused, fault.Conflict},
	} {
		var objects []runtime.Object
		if test.there != nil {
			objects = append(objects, test.there)
		}
		got, err := createOrAdopt(t.Context(), client(test.fails, objects...), pipelineRun("", key),
			func(context.Context) error { return test.prepare })
		f := fault.Of(err)
		switch {
		case f == nil && (test.class != 0 || got.UID != test.want):
			t.Errorf("%s: PipelineRun %q, want %q or class %v", name, got.UID, test.want, test.class)
		case f != nil && (f.Class != test.class || test.reason != "" && f.Reason != test.reason):
			t.Errorf("%s: %v %s: %v, want %v %s", name, f.Class, f.Reason, err, test.class, test.reason)
		}
	}
}

// A run that must not be created is cancelled, unless an earlier attempt has created it. While that
// is not known it waits.
func TestCancelledOrSupersededRunIsNotCreated(t *testing.T) {
	t.Parallel()
	run, why := &v1alpha1.Run{Namespace: "team", Name: "run"}, &v1alpha1.Cancellation{Why: "rita asked for it"}
	for name, test := range map[string]struct {
		there                 []runtime.Object
		fails                 error
		cancelled, superseded string
	}{
		"it is not there": {nil, nil, attempt.ReasonCancelled, attempt.ReasonSuperseded},
		"it is there":     {[]runtime.Object{pipelineRun("before", "system/push/a")}, nil, "", ""},
		"another one is":  {[]runtime.Object{pipelineRun("foreign", "system/push-2/a")}, nil, attempt.ReasonCancelled, ""},
		"it cannot be read": {
			nil, errBusy, fault.FromKube(fault.VerbRead, errBusy).Reason, fault.FromKube(fault.VerbRead, errBusy).Reason,
		},
	} {
		runs := client(map[string]error{"get": test.fails}, test.there...)
		found, err := cancelled(t.Context(), runs, run, "system/push/", why)
		if got := reasonOf(err); got != test.cancelled || got == "" && found.UID != "before" {
			t.Errorf("%s, cancelled: %q, want %q; found %v", name, got, test.cancelled, found)
		}
		if got := reasonOf(superseded(t.Context(), runs, run, "sha2")); got != test.superseded {
			t.Errorf("%s, superseded: %q, want %q", name, got, test.superseded)
		}
		if err := superseded(t.Context(), runs, run, ""); err != nil {
			t.Errorf("%s, current: %v", name, err)
		}
	}
}

func reasonOf(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Reason
	}
	return ""
}
