// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	ownfake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// test/installation migrates a real cluster. These tests are about decisions and refusals.

const (
	system = "plumbline"
	pacNS  = "openshift-pipelines"
	pacURL = "http://pipelines-as-code-controller.openshift-pipelines.svc.cluster.local:8080"
)

type env struct {
	*testing.T
	Migration
	kube *kubefake.Clientset
	own  *ownfake.Clientset
	out  strings.Builder

	calls, failFrom int
	armed           bool
}

func deployments() schema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource("deployments")
}

// newEnv returns a cluster in which Plumbline is installed, and PaC runs.
func newEnv(t *testing.T, own ...runtime.Object) *env {
	t.Helper()
	e := &env{T: t, kube: kubefake.NewSimpleClientset(
		deployment(pacNS, pac.ControllerName), deployment(pacNS, pac.WatcherName), deployment(pacNS, pac.WebhookName),
		deployment(system, "plumbline-controller"), deployment(system, "plumbline-receiver"),
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: pacNS, Name: pac.ControllerName},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
				{Name: "http-metrics", Port: 9090}, {Name: "http-listener", Port: 8080},
			}},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}},
	), own: ownfake.NewSimpleClientset(own...)}
	e.Migration = Migration{
		Cluster:   &kube.Cluster{Kube: e.kube, Own: e.own},
		Namespace: system, ConfigMap: config.Name, Timeout: 200 * time.Millisecond, Poll: time.Millisecond, Out: &e.out,
	}
	e.allow()
	return e
}

func deployment(namespace, name string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		Status:     appsv1.DeploymentStatus{Replicas: 1},
	}
}

// allow grants this account all rights except some, for example "create secrets".
func (e *env) allow(without ...string) {
	e.kube.PrependReactor("create", "selfsubjectaccessreviews",
		func(a clienttesting.Action) (bool, runtime.Object, error) {
			review := a.(clienttesting.CreateAction).GetObject(). //nolint:forcetypeassert // of this verb and kind
										DeepCopyObject().(*authorizationv1.SelfSubjectAccessReview)
			right := review.Spec.ResourceAttributes
			review.Status.Allowed = !slices.Contains(without, right.Verb+" "+right.Resource)
			return true, review, nil
		})
}

// put creates objects of Kubernetes.
func (e *env) put(objects ...runtime.Object) {
	e.Helper()
	for _, object := range objects {
		if err := e.kube.Tracker().Add(object); err != nil {
			e.Fatal(err)
		}
	}
}

// data returns the data of ConfigMap plumbline.
func (e *env) data() map[string]string {
	e.Helper()
	cm, err := e.settings(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	return cm.Data
}

// set changes the data of ConfigMap plumbline.
func (e *env) set(pairs ...string) {
	e.Helper()
	cm, err := e.settings(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	cm.Data = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		cm.Data[pairs[i]] = pairs[i+1]
	}
	if _, err := e.kube.CoreV1().ConfigMaps(system).Update(e.Context(), cm, metav1.UpdateOptions{}); err != nil {
		e.Fatal(err)
	}
	e.kube.ClearActions()
}

// writes returns the calls that change something.
func (e *env) writes() []clienttesting.Action {
	return slices.DeleteFunc(slices.Concat(e.kube.Actions(), e.own.Actions()), func(a clienttesting.Action) bool {
		return slices.Contains([]string{"get", "list"}, a.GetVerb()) || a.GetResource().Group == authorizationv1.GroupName
	})
}

func (e *env) says(parts ...string) {
	e.Helper()
	for _, part := range parts {
		if !strings.Contains(e.out.String(), part) {
			e.Errorf("the output does not have %q:\n%s", part, e.out.String())
		}
	}
}

// refused fails the test unless the error has the words and nothing was changed.
func (e *env) refused(err error, words string) {
	e.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		e.Errorf("got %v, want %q", err, words)
	}
	if all := e.writes(); len(all) > 0 {
		e.Errorf("changed %v", all)
	}
}

func repository(namespace, name, url string) *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid"},
		Spec:       pacv1alpha1.RepositorySpec{URL: url},
	}
}

// failAt lets all calls of the API server from the n-th on fail, as for a process that ends there;
// 0 lets none fail.
func (e *env) failAt(n int) {
	e.calls, e.failFrom = 0, n
	if e.armed {
		return
	}
	e.armed = true
	fail := func(clienttesting.Action) (bool, runtime.Object, error) {
		e.calls++
		if e.failFrom > 0 && e.calls >= e.failFrom {
			return true, nil, apierrors.NewBadRequest("the process ends here")
		}
		return false, nil, nil
	}
	e.kube.PrependReactor("*", "*", fail)
	e.own.PrependReactor("*", "*", fail)
	if fake, is := e.Cluster.Dynamic.(*dynamicfake.FakeDynamicClient); is {
		fake.PrependReactor("*", "*", fail)
	}
}

func pacConfig(pairs ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: pacNS, Name: "pipelines-as-code"},
		Data:       map[string]string{},
	}
	for i := 0; i < len(pairs); i += 2 {
		cm.Data[pairs[i]] = pairs[i+1]
	}
	return cm
}

func condition(status, reason string) apis.Condition {
	return apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionStatus(status), Reason: reason}
}

// withRuns adds a client for PipelineRuns.
func (e *env) withRuns() {
	e.Cluster.Dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{runs(): "PipelineRunList"})
}

func runs() schema.GroupVersionResource {
	return pipelinev1.SchemeGroupVersion.WithResource("pipelineruns")
}

func (e *env) create(all ...*pipelinev1.PipelineRun) {
	e.Helper()
	for _, run := range all {
		_, err := e.Cluster.Dynamic.Resource(runs()).Namespace(run.Namespace).
			Create(e.Context(), untyped(e.T, run), metav1.CreateOptions{})
		if err != nil {
			e.Fatal(err)
		}
	}
}

// untyped returns a PipelineRun as the dynamic client has it.
func untyped(t *testing.T, run *pipelinev1.PipelineRun) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(run)
	if err != nil {
		t.Fatal(err)
	}
	object["apiVersion"], object["kind"] = "tekton.dev/v1", "PipelineRun"
	return &unstructured.Unstructured{Object: object}
}

func (e *env) get(name string) *unstructured.Unstructured {
	e.Helper()
	object, err := e.Cluster.Dynamic.Resource(runs()).Namespace(team).Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return object
}

// statusOf returns the spec.status of a PipelineRun.
func (e *env) statusOf(name string) string {
	e.Helper()
	text, _, err := unstructured.NestedString(e.get(name).Object, "spec", "status")
	if err != nil {
		e.Fatal(err)
	}
	return text
}

func claimKind() schema.GroupVersionResource {
	return v1alpha1.SchemeGroupVersion.WithResource("repositoryclaims")
}

// servedNow returns serve-namespaces from the tracker, without a call.
func (e *env) servedNow() string {
	object, err := e.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), system, config.Name)
	cm, is := object.(*corev1.ConfigMap)
	if err != nil || !is {
		e.Fatal(err)
	}
	return cm.Data["serve-namespaces"]
}

func conflict() error {
	return apierrors.NewConflict(corev1.Resource("configmaps"), config.Name, nil)
}
