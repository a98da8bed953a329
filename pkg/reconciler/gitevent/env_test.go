// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

const (
	system = "plumbline"
	tenant = "team"
	sha    = "0123456789012345678901234567890123456789"
	// defaultSHA is the head of the default branch.
	defaultSHA = "dddddddddddddddddddddddddddddddddddddddd"
	// The keys of the GitHub App's Secret.
	keyAppID      = "github-application-id"
	keyPrivateKey = "github-private-key"
)

// env is a cluster of fakes with one event in it, and the process that leads it. It outlives the
// processes that a test kills.
type env struct {
	t      *testing.T
	own    *fake.Clientset
	tekton *tektonfake.Clientset
	kube   *kubefake.Clientset
	git    *fakeGit
	clock  *clocktesting.FakePassiveClock
	// settings is the ConfigMap, and repository changes the Repository.
	settings   map[string]string
	repository func(*pacv1alpha1.Repository)

	// logs reads pods and logs; nil means kube.
	logs corev1client.CoreV1Interface

	alive     *Reconciler            // the process; nil before the first one and after a kill
	caches    caches                 // the process's, as its informers would keep them
	forgets   bool                   // each reconcile is another process's, as when each one is killed after it
	ends      corev1.ConditionStatus // how each PipelineRun finishes in until; "" if it goes on until it is told to stop
	processes atomic.Int64
	mu        sync.Mutex
	calls     []string
	hook      func(n int, call string) outcome
	asked     func(action clienttesting.Action) error // may refuse a call to the API server
	woken     func(event string, after time.Duration) // is called at each wake-up, if it is set
	// when the last reconcile wants the next one, in addition to what it returned
	wakes []time.Duration
}

// outcome says what a scripted fault does with a call.
type outcome struct {
	err   error
	apply bool // the call takes effect although its answer is an error
	kill  bool // the process ends here, after the call took effect if apply
}

func newEnv(t *testing.T, files ...git.File) *env {
	t.Helper()
	w := &env{t: t, git: &fakeGit{files: files, checks: map[string]status.Check{}},
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	w.git.env = w
	w.own = fake.NewSimpleClientset(event(), repository(), repositoryClaim())
	w.tekton = tektonfake.NewSimpleClientset()
	w.kube = kubefake.NewSimpleClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "app"},
		Data:       map[string][]byte{keyAppID: []byte("1"), keyPrivateKey: []byte("pem")},
	})
	w.tekton.PrependReactor("create", "pipelineruns", w.identify)
	w.own.PrependReactor("*", "*", w.version(w.own.Tracker()))
	w.own.PrependReactor("*", "*", w.intercept(w.version(w.own.Tracker())))
	w.tekton.PrependReactor("*", "*", w.intercept(clienttesting.ObjectReaction(w.tekton.Tracker())))
	w.kube.PrependReactor("*", "*", w.intercept(clienttesting.ObjectReaction(w.kube.Tracker())))
	return w
}

// identify gives a new PipelineRun a UID, as a real API server does, and stores nothing for a dry
// run.
func (w *env) identify(action clienttesting.Action) (bool, k8sruntime.Object, error) {
	create, _ := action.(clienttesting.CreateAction)
	if impl, ok := action.(clienttesting.CreateActionImpl); ok && len(impl.GetCreateOptions().DryRun) > 0 {
		return true, create.GetObject(), nil
	}
	if run, ok := create.GetObject().(*pipelinev1.PipelineRun); ok && run.UID == "" {
		run.UID = types.UID("uid-" + run.Name)
	}
	return false, nil, nil
}

// intercept counts calls and lets the hook decide about them.
func (w *env) intercept(apply clienttesting.ReactionFunc) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		name := action.GetVerb() + " " + action.GetResource().Resource
		if action.GetSubresource() != "" {
			name += "/" + action.GetSubresource()
		}
		o := w.called(name)
		if w.asked != nil {
			if err := w.asked(action); err != nil {
				o.err = err
			}
		}
		if o.err == nil && !o.kill {
			return false, nil, nil
		}
		if o.apply {
			if create, ok := action.(clienttesting.CreateAction); ok && action.GetVerb() == "create" {
				_, _, _ = w.identify(create)
			}
			_, _, _ = apply(action)
		}
		if o.kill {
			runtime.Goexit()
		}
		return true, nil, o.err
	}
}

func (w *env) called(name string) outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, name)
	if w.hook == nil {
		return outcome{}
	}
	return w.hook(len(w.calls), name)
}

func event() *v1alpha1.GitEvent {
	return &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "push-1", UID: "event-uid"},
		Spec: v1alpha1.GitEventSpec{
			Provider: "fake", Host: "git.example", DeliveryKey: "1", Trigger: v1alpha1.TriggerPush, EventType: "push",
			Repository: v1alpha1.RepositoryReference{
				Namespace: tenant, Name: "app", UID: "repo-uid", URL: "https://git.example/acme/app",
			},
			Project: v1alpha1.Project{Owner: "acme", Name: "app", ID: 5, URL: "https://git.example/acme/app"},
			SHA:     sha, BaseRef: "refs/heads/main", HeadRef: "refs/heads/main", HeadURL: "https://git.example/acme/app",
			Sender:  "dev",
			Commit:  &v1alpha1.Commit{Title: "a change"},
			Payload: v1alpha1.BlobReference{Name: "push-1", Chunks: 1},
		},
	}
}

func repository() *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "app", UID: "repo-uid"},
		Spec:       pacv1alpha1.RepositorySpec{URL: "https://git.example/acme/app"},
	}
}

func repositoryClaim() *v1alpha1.RepositoryClaim {
	const url = "https://git.example/acme/app"
	return &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
		Spec: v1alpha1.RepositoryClaimSpec{
			URL: url, Repository: v1alpha1.ClaimOwner{Namespace: tenant, Name: "app", UID: "repo-uid"},
		},
	}
}

// bindProject binds the event's URL to a project of the Git service, as an earlier event has done.
func (w *env) bindProject(to v1alpha1.ProjectIdentity) {
	bound := repositoryClaim()
	bound.Status.Bound = &v1alpha1.BoundProject{ProjectIdentity: to, RepositoryUID: repository().UID}
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("repositoryclaims"), bound, system))
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// uncounted calls f without counting its calls.
func (w *env) uncounted(f func() *Reconciler) *Reconciler {
	w.mu.Lock()
	hook, calls := w.hook, w.calls
	w.hook = nil
	w.mu.Unlock()
	r := f()
	w.mu.Lock()
	w.hook, w.calls = hook, calls
	w.mu.Unlock()
	return r
}

// settle reconciles until the event is settled, and finishes each PipelineRun as soon as it exists.
func (w *env) settle(outcome corev1.ConditionStatus) {
	w.t.Helper()
	for range 60 {
		_, _ = w.reconcile()
		w.clock.SetTime(w.clock.Now().Add(6 * time.Minute))
		w.uncounted(func() *Reconciler { w.finishRuns(outcome); return nil })
		if w.event().Settled() {
			return
		}
	}
	w.t.Fatalf("not settled after 60 reconciles: %+v", w.event().Status)
}

func (w *env) finishRuns(outcome corev1.ConditionStatus) {
	for _, run := range w.runs() {
		if run.IsDone() {
			continue
		}
		run.Status.SetCondition(&apis.Condition{
			Type: apis.ConditionSucceeded, Status: outcome, Reason: "Done", Message: "ended by the test",
		})
		w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
	}
}

func (w *env) event() *v1alpha1.GitEvent {
	obj, err := w.own.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, "push-1")
	w.must(err)
	e, ok := obj.(*v1alpha1.GitEvent)
	if !ok {
		w.t.Fatalf("unexpected %T", obj)
	}
	return e.DeepCopy()
}

func (w *env) events() []v1alpha1.GitEvent {
	obj, err := w.own.Tracker().List(v1alpha1.SchemeGroupVersion.WithResource("gitevents"),
		v1alpha1.SchemeGroupVersion.WithKind("GitEvent"), system)
	w.must(err)
	list, ok := obj.(*v1alpha1.GitEventList)
	if !ok {
		w.t.Fatalf("unexpected %T", obj)
	}
	return list.Items
}

func (w *env) runs() []pipelinev1.PipelineRun {
	obj, err := w.tekton.Tracker().List(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"),
		pipelinev1.SchemeGroupVersion.WithKind("PipelineRun"), tenant)
	w.must(err)
	list, ok := obj.(*pipelinev1.PipelineRunList)
	if !ok {
		w.t.Fatalf("unexpected %T", obj)
	}
	return list.Items
}

func (w *env) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
