// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

const (
	system = "plumbline"
	tenant = "team"
)

// fixture is a Pool with fake services: "app" has the App's credentials, as GitHub does. Each
// Repository names the credentials for "own", as for GitLab.
type fixture struct {
	expires *time.Time // what the service says of a token, nil if nothing calls it
	*Pool
	t     *testing.T
	kube  *kubefake.Clientset
	pac   *fake.Clientset
	cache cache.Indexer
	clock *clocktesting.FakePassiveClock

	// refuse is the error of each login. logins has the credentials of the logins, and bases the
	// addresses.
	refuse error
	logins []provider.Credentials
	bases  []string
	// newer is the commit that supersedes another one, as the Git service says. askedFor has the
	// commits for which it was requested.
	newer    string
	newerErr error
	askedFor []string
	woken    []string
	// inUse are the events that may call their Git service. While busy is set, no other event may.
	inUse map[string]int
	busy  error
}

// newFixture has the App's Secret, and the Repository team/app, which the cache has, too.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	r := &fixture{
		t: t, kube: kubefake.NewSimpleClientset(secret(system, "app",
			map[string]string{keyAppID: "7", keyPrivateKey: "pem"})), pac: fake.NewSimpleClientset(repository()),
		cache: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), inUse: map[string]int{},
	}
	r.must(r.cache.Add(repository()))
	own := r.service()
	own.BaseURL = func(configured, repositoryURL string, _ v1alpha1.Project) string {
		return configured + " " + repositoryURL
	}
	r.Pool = New(Options{
		Namespace: system, AppSecret: "app", GlobalRepository: "global",
		Providers: map[string]provider.Provider{"app": r.service(), "own": own},
		Kube:      r.kube.CoreV1(), Cache: paclisters.NewRepositoryLister(r.cache),
		Repositories: r.pac.PipelinesascodeV1alpha1(),
		Clock:        r.clock, Calls: Calls{Acquire: r.acquire},
		Wake: func(event string, _ time.Duration) { r.woken = append(r.woken, event) },
	})
	return r
}

func (r *fixture) acquire(_ context.Context, event *v1alpha1.GitEvent) (release func(), err error) {
	if r.busy != nil {
		return nil, r.busy
	}
	r.inUse[event.Name]++
	return func() { r.inUse[event.Name]-- }, nil
}

func (r *fixture) service() provider.Provider {
	return provider.Provider{
		Connect: func(_ context.Context, base string, _ v1alpha1.Project, c provider.Credentials) (provider.Client, error) {
			if r.expires != nil && c.Token != "" {
				c.Expires(*r.expires)
			}
			c.Observe, c.Expires = nil, nil // functions cannot be compared
			r.logins, r.bases = append(r.logins, c), append(r.bases, base)
			return provider.Client{History: history{fixture: r}}, r.refuse
		}}
}

// history returns what supersedes a commit.
type history struct {
	provider.History
	fixture *fixture
}

func (h history) Supersedes(_ context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	h.fixture.askedFor = append(h.fixture.askedFor, event.SHA)
	return h.fixture.newer, h.fixture.newerErr
}

func (r *fixture) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// begin opens a session of an event with this name and host. Its Repository is team/app.
func (r *fixture) begin(name, service, host string) *Session {
	c := config.Default()
	c.GitHubURL = "https://ghe.example"
	c.Remote.Refused = egress.Hosts{"203.0.0.0/8"}
	return r.Begin(event(name, service, host), c)
}

// store creates or replaces a Secret.
func (r *fixture) store(s *corev1.Secret) {
	r.t.Helper()
	_ = r.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), s.Namespace, s.Name)
	r.must(r.kube.Tracker().Add(s))
}

// provide changes the Repository team/app, live and in the cache.
func (r *fixture) provide(change func(*pacv1alpha1.Repository)) {
	r.t.Helper()
	changed := repository()
	change(changed)
	r.must(r.pac.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, changed.Namespace))
	r.must(r.cache.Update(changed))
}

// failing makes each read of a kind return an error; nil ends that.
func failing(f *clienttesting.Fake, resource string, err error) {
	f.PrependReactor("get", resource,
		func(clienttesting.Action) (bool, runtime.Object, error) { return err != nil, nil, err })
}

func count(f *clienttesting.Fake, verb, resource string) int {
	n := 0
	for _, action := range f.Actions() {
		if action.Matches(verb, resource) {
			n++
		}
	}
	return n
}

func secret(namespace, name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func repository() *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "app", UID: "repo-uid"},
		Spec:       pacv1alpha1.RepositorySpec{URL: "https://git.example/acme/app"},
	}
}

func event(name, service, host string) *v1alpha1.GitEvent {
	return &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name},
		Spec: v1alpha1.GitEventSpec{
			Provider: service, Host: host, InstallationID: 42, SHA: "head", Before: "before",
			Repository: v1alpha1.RepositoryReference{Namespace: tenant, Name: "app", URL: "https://git.example/acme/app"},
		},
	}
}

// waits makes the event of a session wait with a fault of each kind, as its status has it.
func waits(s *Session, faults ...*fault.Error) {
	s.event.Status.Waits = nil
	for _, f := range faults {
		s.event.Status.Waits = append(s.event.Status.Waits, v1alpha1.Wait{Class: f.Class.String(), Reason: f.Reason})
	}
}
