// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	logtesting "knative.dev/pkg/logging/testing"
	"knative.dev/pkg/reconciler"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

const system = "plumbline"

// service is a Git service that knows what a case says, and takes every check.
type service struct {
	files   []git.File
	changed git.Changes
	pulls   []git.Pull
	head    v1alpha1.Commit
	// pull is what a comment's pull request has.
	pull func(*v1alpha1.GitEventSpec)
}

func (s *service) Head(_ context.Context, e *v1alpha1.GitEventSpec) (git.Head, error) {
	head := git.Head{SHA: e.SHA, Project: e.Project, Ref: e.HeadRef, PullRequest: e.PullRequest, Commit: s.head}
	if e.Commit != nil {
		head.Commit = *e.Commit
	}
	return head, nil
}

func (s *service) Files(context.Context, string, string) ([]git.File, error) { return s.files, nil }
func (s *service) File(context.Context, string, string) ([]byte, error)      { return nil, nil }
func (s *service) DefaultBranch(context.Context) (string, error)             { return "", nil }
func (s *service) FileAt(context.Context, string, ...v1alpha1.Project) ([]byte, error) {
	return nil, nil
}
func (s *service) Covered(context.Context) ([]v1alpha1.Project, error)  { return nil, nil }
func (s *service) CanWrite(context.Context, string) (bool, error)       { return true, nil }
func (s *service) Member(context.Context, string) (bool, error)         { return true, nil }
func (s *service) InTeam(context.Context, string, string) (bool, error) { return true, nil }
func (s *service) RootFiles(context.Context, ...string) (map[string][]byte, error) {
	return nil, nil
}

func (s *service) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, told string) (string, error) {
	return told, nil
}

func (s *service) Changed(context.Context, *v1alpha1.GitEventSpec) (git.Changes, error) {
	return s.changed, nil
}
func (s *service) Pulls(context.Context, string) ([]git.Pull, error) { return s.pulls, nil }

func (s *service) Complete(_ context.Context, e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if e.Comment == nil {
		return e, nil
	}
	out := e.DeepCopy()
	s.pull(out)
	return out, nil
}

func (s *service) Versions(_ context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error) {
	return []git.Version{{SHA: event.SHA}}, nil
}

func (s *service) Differ(context.Context, string, string, ...string) ([]string, error) {
	return nil, nil
}

func (s *service) Supersedes(context.Context, *v1alpha1.GitEventSpec) (string, error) {
	return "", nil
}

func (s *service) Tip(context.Context, *v1alpha1.GitEventSpec) (string, error) {
	return "", nil
}

func (s *service) Put(_ context.Context, _ git.Head, _ string, c status.Check, _ bool) (string, error) {
	return c.ExternalID, nil
}

func (*service) RevokeToken(context.Context, string) error { return nil }
func (s *service) CloneToken(context.Context, map[string]string, ...v1alpha1.Project) (provider.Token, error) {
	return provider.Token{Value: "token", ExpiresAt: time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)}, nil
}

// controlled is what the controller's reconciler has done with an event.
type controlled struct {
	// created are the PipelineRuns as YAML, in the order in which they were created.
	created string
	plan    *v1alpha1.Plan
}

// control has the controller process a delivery: it is decoded and recorded as the receiver does,
// and reconciled by what cmd/controller runs, against clients that keep objects in memory.
func control(t *testing.T, sent delivery.Delivery, repository *pacv1alpha1.Repository,
	secrets map[string]map[string][]byte, s *service) controlled {
	t.Helper()
	event, services := received(t, sent, repository, s)
	url, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	must(t, err)
	claim := &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)}, Spec: v1alpha1.RepositoryClaimSpec{
			URL: url, Repository: v1alpha1.ClaimOwner{
				Namespace: repository.Namespace, Name: repository.Name, UID: repository.UID,
			},
		}}
	own := fake.NewSimpleClientset(event, repository, claim)
	kube := kubefake.NewSimpleClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "app"},
		Data: map[string][]byte{"github-application-id": []byte("1"), "github-private-key": []byte("pem")}})
	for name, data := range secrets {
		must(t, kube.Tracker().Add(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: repository.Namespace, Name: name}, Data: data,
		}))
	}
	tekton := tektonfake.NewSimpleClientset()
	var created []byte
	tekton.PrependReactor("create", "pipelineruns", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object := action.(clienttesting.CreateAction).GetObject()
		data, err := yaml.Marshal(object)
		must(t, err)
		if created != nil {
			created = append(created, "---\n"...)
		}
		created = append(created, data...)
		run := object.(*pipelinev1.PipelineRun).DeepCopy()
		run.UID = types.UID(run.Name)
		return true, run, nil
	})
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	events, repositories := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	must(t, events.Add(event))
	must(t, repositories.Add(repository))
	settings := config.NewStore(logtesting.TestLogger(t))
	settings.OnConfigChanged(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}})
	r := gitevent.New(deps.Cluster{
		Plumbline: own.PlumblineV1alpha1(),
		PaC:       own.PipelinesascodeV1alpha1(),
		Tekton: deps.Tekton{
			TektonV1Interface: tekton.TektonV1(),
		},
		Kube: deps.Kube{CoreV1Interface: kube.CoreV1(), Logs: kube.CoreV1()},
		Open: deps.Open{
			GitEventLister: listers.NewGitEventLister(events),
			Of:             func(string, string) []*v1alpha1.GitEvent { return nil },
			From:           func(string) []*v1alpha1.GitEvent { return nil },
		},
		Repositories: paclisters.NewRepositoryLister(repositories),
		Claims:       listers.NewRepositoryClaimLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)),
		Runs:         cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		Recorder:     record.NewFakeRecorder(1000),
		Clock:        clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}, deps.Options{
		Budget: quota.New(func() quota.Limits { return quota.Limits{} }, clock.RealClock{}, nil), Namespace: system,
		Version: devel, AppSecret: "app", Remote: web.New(web.Options{}), Providers: services, Identity: "test",
	},
		deps.Process{Settings: settings, Wake: func(string, time.Duration) {}})
	must(t, r.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}))
	_ = r.Reconcile(t.Context(), system+"/"+event.Name) // that something waits is no error here
	done, err := own.PlumblineV1alpha1().GitEvents(system).Get(t.Context(), event.Name, metav1.GetOptions{})
	must(t, err)
	return controlled{created: string(created), plan: done.Status.Plan}
}

// received returns the event that the receiver creates for a delivery, and the service it is of
// with our answers.
func received(t *testing.T, sent delivery.Delivery, repository *pacv1alpha1.Repository, s *service) (*v1alpha1.GitEvent,
	map[string]provider.Provider) {
	t.Helper()
	for name, p := range delivery.Services() {
		if !p.Webhook.Claims(sent.Header) {
			continue
		}
		spec, err := p.Webhook.Decode(sent.Header, sent.Body)
		must(t, err)
		spec.Repository = v1alpha1.RepositoryReference{
			Namespace: repository.Namespace, Name: repository.Name, UID: repository.UID, URL: repository.Spec.URL,
		}
		event := &v1alpha1.GitEvent{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: spec.EventName(), UID: "event"}, Spec: *spec,
		}
		packed, err := blob.Pack(sent.Body)
		must(t, err)
		event.Spec.Payload, event.Payload = packed.Whole(), packed.Stream
		data, err := json.Marshal(event) // as the API server has it
		must(t, err)
		stored := &v1alpha1.GitEvent{}
		must(t, json.Unmarshal(data, stored))
		p.Connect = func(context.Context, string, v1alpha1.Project, provider.Credentials) (provider.Client, error) {
			return provider.Client{Source: s, History: s, Tips: s, Addresses: s, Access: s, Reporter: s, Tokens: s}, nil
		}
		return stored, map[string]provider.Provider{name: p}
	}
	t.Fatal("no service claims the delivery")
	return nil, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
