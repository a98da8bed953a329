// SPDX-License-Identifier: Apache-2.0

package orphans_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	logtesting "knative.dev/pkg/logging/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/sweep/orphans"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// env is a PipelineRun without an event, and a Git service that records what is reported.
type env struct {
	t      *testing.T
	closer *orphans.Closer
	clock  *clocktesting.FakePassiveClock
	run    *metav1.PartialObjectMetadata

	objects []runtime.Object
	github  string   // github-url
	secrets []string // namespaces that have a token too
	refuse  error    // the answer of the Git service
	denies  error    // the API server's to a patch of a run
	refuses func(head git.Head) error
	during  func(events plumblineclient.GitEventInterface) // what happens while the first report is under way
	tooMany bool                                           // were asked for
	puts    []put
	patches []string
	alarms  []func()                  // of the turns
	observe func(provider.CallResult) // of the last session
}

type put struct {
	project v1alpha1.Project
	head    git.Head
	id      string
	check   status.Check
}

func newEnv(t *testing.T) *env {
	t.Helper()
	w := &env{t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	w.run = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: tenant, Name: "build-1", UID: "run-uid",
		CreationTimestamp: metav1.NewTime(w.clock.Now().Add(-2 * time.Hour)),
		Labels:            map[string]string{plumbline.EventLabel: "push-1"},
		Annotations: map[string]string{
			pipelinesascode.GitProvider: "own", pipelinesascode.Repository: "app", pipelinesascode.RepoURL: url,
			pipelinesascode.SHA:          sha,
			pipelinesascode.SourceBranch: "main", pipelinesascode.OriginalPRName: "build", pipelinesascode.CheckRunID: "7",
			pipelinesascode.State: pipelinesascode.StateStarted,
		},
	}}
	w.objects = []runtime.Object{repository(), claim()}
	return w
}

func repository() *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "app", UID: "repo-uid"},
		Spec: pacv1alpha1.RepositorySpec{
			URL: url, GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "token"}},
		},
	}
}

func claim() *v1alpha1.RepositoryClaim {
	return &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
		Spec: v1alpha1.RepositoryClaimSpec{
			URL: url, Repository: v1alpha1.ClaimOwner{Namespace: tenant, Name: "app", UID: "repo-uid"},
		},
		Status: v1alpha1.RepositoryClaimStatus{Bound: &v1alpha1.BoundProject{
			ProjectIdentity: v1alpha1.ProjectIdentity{ID: 5, OwnerID: 3}, RepositoryUID: "repo-uid",
		}},
	}
}

// start creates the Closer of a new process.
func (w *env) start() {
	own := fake.NewSimpleClientset(w.objects...)
	var secrets []runtime.Object
	for _, namespace := range append(w.secrets, tenant) {
		secrets = append(secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token"},
			Data: map[string][]byte{"provider.token": []byte("t")}})
	}
	kube := kubefake.NewSimpleClientset(secrets...)
	services := map[string]provider.Provider{"own": {
		Name: "own", BaseURL: func(string, string, v1alpha1.Project) string { return "https://git.example" },
		Connect: func(_ context.Context, _ string, project v1alpha1.Project, c provider.Credentials) (provider.Client,
			error) {
			w.observe = c.Observe
			return provider.Client{Reporter: reporter{w, project}}, nil
		},
		Metadata: func(id string) (labels, annotations map[string]string) {
			return map[string]string{"id": id}, map[string]string{}
		},
	}}
	none := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	w.closer = &orphans.Closer{
		Events: own.PlumblineV1alpha1().GitEvents(system), Claims: own.PlumblineV1alpha1().RepositoryClaims(system),
		Repositories: own.PipelinesascodeV1alpha1(), Runs: patcher{w: w}, Secrets: kube.CoreV1(), Providers: services,
		Clock: w.clock,
		Credentials: credentials.New(orphans.OneByOne(credentials.Options{
			Namespace: system, Providers: services, Kube: kube.CoreV1(), Cache: paclisters.NewRepositoryLister(none),
			Repositories: own.PipelinesascodeV1alpha1(), Clock: w.clock,
		}, func(_ time.Duration, do func()) { w.alarms = append(w.alarms, do) })),
	}
}

func (w *env) close() (asked bool, err error) {
	settings := config.NewStore(logtesting.TestLogger(w.t))
	settings.OnConfigChanged(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}, Data: map[string]string{"github-url": w.github},
	})
	_, asked, err = w.closer.Close(settings.ToContext(w.t.Context()), w.run)
	return asked, err
}

type reporter struct {
	w       *env
	project v1alpha1.Project
}

func (r reporter) Put(_ context.Context, head git.Head, id string, check status.Check, _ bool) (string, error) {
	r.w.puts = append(r.w.puts, put{r.project, head, id, check})
	if r.w.during != nil {
		r.w.during(r.w.closer.Events)
		r.w.during = nil
	}
	if r.w.refuses != nil {
		return id, r.w.refuses(head)
	}
	return "id of " + check.Key, r.w.refuse
}

type patcher struct {
	metadata.ResourceInterface
	w *env
}

func (p patcher) Namespace(string) metadata.ResourceInterface { return p }

//nolint:revive // client-go decides what it takes
func (p patcher) Patch(_ context.Context, _ string, _ types.PatchType, data []byte,
	_ metav1.PatchOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	p.w.patches = append(p.w.patches, string(data))
	return nil, p.w.denies
}

// recorded returns the event of the run, with the results of that and of another one.
func recorded() *v1alpha1.GitEvent {
	return &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "push-1", UID: "event-uid"},
		Spec: v1alpha1.GitEventSpec{
			Provider: "own", Host: "git.example", Project: v1alpha1.Project{ID: 5},
			Repository: v1alpha1.RepositoryReference{Namespace: tenant, Name: "app", UID: "repo-uid", URL: url},
		},
		Status: v1alpha1.GitEventStatus{
			Disposition: v1alpha1.DispositionRuns, Plan: &v1alpha1.Plan{HeadSHA: sha},
			Runs: []v1alpha1.Run{
				{Namespace: tenant, Name: "build-1", UID: "run-uid", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}},
				{Namespace: tenant, Name: "other", UID: "other-uid", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed}},
			},
		},
	}
}
