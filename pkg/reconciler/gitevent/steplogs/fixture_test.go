// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// fixture is a cluster with one failed run: its TaskRuns, and an API server with pods, their logs
// and Secrets.
type fixture struct {
	t        *testing.T
	tekton   *tektonfake.Clientset
	mu       sync.Mutex
	pods     map[string]*corev1.Pod
	logs     map[string]string // by pod/container
	secrets  map[string]map[string][]byte
	managed  []metav1.ManagedFieldsEntry // of each Secret
	answer   func(path string) int       // a code other than 0 is the answer
	closed   func(path string)           // gets the path of each answer that was read
	requests []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{
		t: t, tekton: tektonfake.NewSimpleClientset(), pods: map[string]*corev1.Pod{}, logs: map[string]string{},
		secrets: map[string]map[string][]byte{}, answer: func(string) int { return 0 },
		closed: func(string) {},
	}
}

// controlledBy is the owner reference of a controller.
func controlledBy(uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Controller: new(true), UID: uid, Kind: "X", Name: "x", APIVersion: "x/v1"}}
}

// failed adds a TaskRun of the run whose step failed, its pod and the log.
func (f *fixture) failed(task, log string) (*pipelinev1.TaskRun, *corev1.Pod) {
	f.t.Helper()
	name := "run-" + task
	taskRun := &pipelinev1.TaskRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID("uid-" + task), OwnerReferences: controlledBy("run-uid"),
			Labels: map[string]string{pipeline.PipelineRunLabelKey: "run", pipeline.PipelineTaskLabelKey: task},
		},
		Spec: pipelinev1.TaskRunSpec{ServiceAccountName: "builder"},
	}
	taskRun.Status.PodName, taskRun.Status.TaskSpec = name+"-pod", &pipelinev1.TaskSpec{}
	taskRun.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: "False", Reason: "Failed"})
	taskRun.Status.Steps = []pipelinev1.StepState{{
		Name: "test", Container: "step-test",
		ContainerState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}}
	f.must(f.tekton.Tracker().Add(taskRun))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name + "-pod", OwnerReferences: controlledBy(taskRun.UID),
	}}
	f.pods[pod.Name] = pod
	f.logs[pod.Name+"/step-test"] = log
	return taskRun, pod
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// update stores a changed TaskRun.
func (f *fixture) update(taskRun *pipelinev1.TaskRun) {
	f.t.Helper()
	f.must(f.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("taskruns"), taskRun, "team"))
}

func (f *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/team/")
	f.requests = append(f.requests, path)
	code := f.answer(path)
	if code == http.StatusRequestTimeout { // hangs
		f.mu.Unlock()
		<-r.Context().Done()
		f.mu.Lock()
		return
	}
	kind, name, _ := strings.Cut(path, "/")
	name, isLog := strings.CutSuffix(name, "/log")
	var found any
	switch {
	case code != 0:
	case isLog:
		if log, ok := f.logs[name+"/"+r.URL.Query().Get("container")]; ok {
			_, _ = io.WriteString(w, log)
			return
		}
	case kind == "secrets" && f.secrets[name] != nil:
		found = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: f.managed}, Data: f.secrets[name],
		}
	case kind == "pods":
		list := &corev1.PodList{}
		for pod := range maps.Values(f.pods) {
			list.Items = append(list.Items, *pod)
		}
		found = list
	}
	if found == nil {
		reasons := map[int]metav1.StatusReason{
			400: metav1.StatusReasonBadRequest, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
			500: metav1.StatusReasonInternalError,
		}
		code = cmp.Or(code, http.StatusNotFound)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		found = &metav1.Status{Status: "Failure", Code: int32(code), Reason: reasons[code], Message: "refused"}
		_ = json.NewEncoder(w).Encode(found)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found)
}

// reader returns a Reader of the fixture.
func (f *fixture) reader() *Reader {
	f.t.Helper()
	server := httptest.NewServer(f)
	f.t.Cleanup(server.Close)
	kube, err := corev1client.NewForConfig(&rest.Config{Host: server.URL, QPS: -1, WrapTransport: f.wrap})
	f.must(err)
	return &Reader{Tekton: f.tekton.TektonV1(), Kube: kube}
}

// wrap reports the answers that a client has read.
func (f *fixture) wrap(inner http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := inner.RoundTrip(r)
		if err == nil {
			response.Body = &body{response.Body, func() { f.closed(r.URL.Path) }}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type body struct {
	io.ReadCloser
	closed func()
}

func (b *body) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

func request() Request {
	return Request{
		Namespace: "team", Name: "run", UID: "run-uid", Steps: 5, Lines: 3, Bytes: func(int) int { return 1000 },
	}
}

func (f *fixture) read() (v1alpha1.RunLog, bool) {
	f.t.Helper()
	return f.readAs(request())
}

func (f *fixture) readAs(request Request) (v1alpha1.RunLog, bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
	defer cancel()
	return f.reader().Read(ctx, request)
}
