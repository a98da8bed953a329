// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	versioned "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

const (
	system = "plumbline"
	here   = "https://hooks.example.com/in"
	// pageSize of the service of these tests.
	pageSize = 20
)

// env is a GitLab with one project, a receiver and an API server. A process is its reconciler.
type env struct {
	*testing.T
	clock *clocktesting.FakeClock
	hooks []provider.Hook
	log   []provider.Attempt // of hook 7, oldest first
	// others are the logs of other hooks that lead here.
	others map[int64]*[]provider.Attempt
	// receive answers a delivery; nil is 202 to all.
	receive func(guid string) int
	// fails is what every call of the service fails with.
	fails error
	// unread is what reading the whole log fails with.
	unread error
	gone   bool // GitLab resends nothing
	// heads are the project's, moved is when those of pull requests moved, and noHeads is what
	// reading them fails with.
	heads    []provider.Head
	moved    map[int64]time.Time
	noHeads  error
	recorded map[string]int
	resent   []string
	when     []time.Time
	calls    int
	repos    cache.Indexer
	claims   cache.Indexer
	client   *versioned.Clientset
	kube     *fake.Clientset
	events   *record.FakeRecorder
	process  *redelivery.Reconciler
	source   *source
	meter    metric.Reader
}

func newEnv(t *testing.T) *env {
	t.Helper()
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	url := "https://gitlab.com/acme/team/app"
	repository := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "app", UID: "1", Generation: 1, CreationTimestamp: metav1.NewTime(begin),
		},
		Spec: pacv1alpha1.RepositorySpec{
			URL: url, GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "token"}},
		},
	}
	e := &env{
		T: t, clock: clocktesting.NewFakeClock(begin.Add(time.Hour)), recorded: map[string]int{},
		hooks: []provider.Hook{{ID: 3, Project: 5, URL: "https://chat.example.com/in", State: provider.HookCalled},
			{ID: 7, Project: 5, URL: here + "/", State: provider.HookCalled, Pushes: true, Pulls: true}},
		repos:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers),
		claims: cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers),
		kube: fake.NewSimpleClientset(
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "token"},
				Data: map[string][]byte{"provider.token": []byte("t")}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: asks.Ledger},
				Data: map[string]string{"github.json": "theirs"}}),
		client: versioned.NewSimpleClientset(repository), others: map[int64]*[]provider.Attempt{},
		events: record.NewFakeRecorder(100),
	}
	e.add(e.repos, repository)
	e.add(e.claims, &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
		Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: "team", Name: "app"}},
		Status: v1alpha1.RepositoryClaimStatus{
			Bound: &v1alpha1.BoundProject{ProjectIdentity: v1alpha1.ProjectIdentity{ID: 5}, RepositoryUID: "1"},
		},
	})
	e.start()
	return e
}

func (e *env) add(to cache.Indexer, object any) {
	e.Helper()
	if err := to.Add(object); err != nil {
		e.Fatal(err)
	}
}

// start starts a process with an empty memory.
func (e *env) start() {
	e.meter = metric.NewManualReader()
	m, err := redelivery.WebhookMetrics(metric.NewMeterProvider(metric.WithReader(e.meter)).Meter("test"))
	if err != nil {
		e.Fatal(err)
	}
	settings := config.Default()
	settings.WebhookURL = here
	e.source = &source{
		service: provider.Provider{
			Name: "gitlab", BaseURL: func(string, string, v1alpha1.Project) string { return "https://gitlab.com" },
			Hooks: func(_ string, p v1alpha1.Project, _ provider.Credentials) (provider.HookLog, error) {
				if p.Owner != "acme/team" || p.Name != "app" {
					e.Errorf("requested for %+v", p)
				}
				return e, nil
			},
		},
		namespace: system, settings: func() *config.Config { return settings },
		credentials:  credentials.Reader{Namespace: system, Kube: e.kube.CoreV1()},
		givenUp:      newGivenUp(e.kube.CoreV1().ConfigMaps(system)),
		repositories: paclisters.NewRepositoryLister(e.repos),
		claims:       listers.NewRepositoryClaimLister(e.claims).RepositoryClaims(system),
		condition: repositories.Condition{Type: pacv1alpha1.RepositoryWebhook, Client: e.client.PipelinesascodeV1alpha1(),
			Recorder: e.events, Namespace: system}, recorder: e.events,
		events: e.client.PlumblineV1alpha1().GitEvents(system), clock: e.clock, logger: zap.NewNop().Sugar(), metrics: m,
		limits: newLimits(), known: map[types.NamespacedName]*memory{},
	}
	e.process = redelivery.NewReconciler(e.source, e.clock, stepTimeout)
	if err := e.process.Promote(pkgreconciler.UniversalBucket(),
		func(pkgreconciler.Bucket, types.NamespacedName) {}); err != nil {
		e.Fatal(err)
	}
}

// Hooks implements provider.HookLog.
func (e *env) Hooks(context.Context) ([]provider.Hook, error) {
	e.calls++
	return e.hooks, e.fails
}

// Attempts implements provider.HookLog.
func (e *env) Attempts(_ context.Context, hook int64, failed bool, page int) ([]provider.Attempt, bool, error) {
	e.calls++
	if !failed && e.unread != nil {
		return nil, false, e.unread
	}
	var all []provider.Attempt
	for _, a := range slices.Backward(*e.logOf(hook)) {
		if !failed || a.Status == 0 || a.Status >= 500 {
			all = append(all, a)
		}
	}
	from := min((page-1)*pageSize, len(all))
	to := min(from+pageSize, len(all))
	return all[from:to], to < len(all), e.fails
}

// Resend implements provider.HookLog.
func (e *env) Resend(_ context.Context, hook, attempt int64) (int, error) {
	e.calls++
	if e.fails != nil {
		return 0, e.fails
	}
	if e.gone {
		return 0, fault.Ignoredf("DeliveryGone", "gone")
	}
	log := *e.logOf(hook)
	i := slices.IndexFunc(log, func(a provider.Attempt) bool { return a.ID == attempt })
	if i < 0 {
		e.Fatalf("requested for attempt %d of webhook %d", attempt, hook)
	}
	guid := log[i].GUID
	e.resent, e.when = append(e.resent, guid), append(e.when, e.clock.Now())
	return e.deliverTo(hook, guid), nil
}

// deliver makes a delivery of webhook 7.
func (e *env) deliver(guid string) int { return e.deliverTo(7, guid) }

func (e *env) deliverTo(hook int64, guid string) int {
	status := http.StatusAccepted
	if e.receive != nil {
		status = e.receive(guid)
	}
	if status == http.StatusAccepted {
		e.recorded[guid]++
	}
	log := e.logOf(hook)
	*log = append(*log, provider.Attempt{
		ID: int64(len(*log) + 1), GUID: guid, At: e.clock.Now(), Status: status, Starts: true,
	})
	return status
}

// missed makes deliveries that no receiver takes.
func (e *env) missed(names ...string) { e.missedBy(7, names...) }

func (e *env) missedBy(hook int64, names ...string) {
	was := e.receive
	e.receive = func(string) int { return 0 }
	for _, name := range names {
		e.deliverTo(hook, name)
	}
	e.receive = was
}

func refuses(guids ...string) func(string) int {
	return func(guid string) int {
		if slices.Contains(guids, guid) {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
}

func (e *env) reconcile() time.Duration {
	e.Helper()
	requeue, after := controller.IsRequeueKey(e.process.Reconcile(context.Background(), "team/app"))
	if !requeue || after <= 0 {
		e.Fatalf("the process is not requeued: %t, %v", requeue, after)
	}
	return after
}

// run lets the process work for so long.
func (e *env) run(long time.Duration) {
	e.Helper()
	for end, n := e.clock.Now().Add(long), 0; ; n++ {
		if n > 20_000 {
			e.Fatal("the process is requeued too often")
		}
		after := e.reconcile()
		e.sync()
		if left := end.Sub(e.clock.Now()); after >= left {
			e.clock.Step(left)
			return
		}
		e.clock.Step(after)
	}
}

// signal lets a receiver signal.
func (e *env) signal() { e.clock.Step(e.process.Signal()) }
