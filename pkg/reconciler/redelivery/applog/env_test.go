// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

const (
	system = "plumbline"
	app    = "plumbline-github-app"
	// pageSize of the service of these tests.
	pageSize = 20
)

// env is GitHub with a log, a receiver, and an API server. A process is its reconciler.
type env struct {
	settings *config.Store
	*testing.T
	clock *clocktesting.FakeClock
	kube  *fake.Clientset
	log   []provider.Attempt // oldest first
	// receive answers a delivery; nil is 202 to all.
	receive  func(guid string) int
	recorded map[string]int // acknowledged attempts
	requests []string       // GUIDs of the requests, in order
	pages    int
	gone     bool // GitHub has dropped all deliveries
	// calls are counted down. The last one ends the process, before its effect or after it.
	calls         int
	after         bool
	claims, repos cache.Indexer
	events        *record.FakeRecorder
	process       *redelivery.Reconciler
	source        *source
	reconciles    int
}

// ticking is a clock that moves with each call, as real ones do.
type ticking struct{ *clocktesting.FakeClock }

func (c ticking) Now() time.Time {
	c.Step(time.Nanosecond)
	return c.FakeClock.Now()
}

func newEnv(t *testing.T) *env {
	t.Helper()
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	e := &env{
		T: t, clock: clocktesting.NewFakeClock(begin), recorded: map[string]int{}, calls: -1,
		claims: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		repos: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		events: record.NewFakeRecorder(100), settings: config.NewStore(zap.NewNop().Sugar()),
		kube: fake.NewSimpleClientset(
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: asks.Ledger, CreationTimestamp: metav1.NewTime(begin)},
			},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: app},
				Data: map[string][]byte{"github-application-id": []byte("7"), "github-private-key": []byte("key")}}),
	}
	e.kube.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := e.call()
		if err == nil {
			return false, nil, nil
		}
		if update, ok := a.(clienttesting.UpdateAction); ok && e.after {
			if err := e.kube.Tracker().Update(a.GetResource(), update.GetObject(), system); err != nil {
				t.Error(err)
			}
		}
		return true, nil, err
	})
	for id := range int64(3) {
		e.serve(id + 1)
	}
	e.clock.Step(time.Hour)
	e.start()
	return e
}

// serve adds a Repository whose URL is bound to the number.
func (e *env) serve(id int64) {
	e.Helper()
	name := fmt.Sprint("app-", id)
	url := "https://github.com/acme/" + name
	for indexer, object := range map[cache.Indexer]any{
		e.repos: &pacv1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: pacv1alpha1.RepositorySpec{URL: url},
		},
		e.claims: &v1alpha1.RepositoryClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
			Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: "team", Name: name}},
			Status: v1alpha1.RepositoryClaimStatus{
				Bound: &v1alpha1.BoundProject{ProjectIdentity: v1alpha1.ProjectIdentity{ID: id}},
			},
		},
	} {
		if err := indexer.Add(object); err != nil {
			e.Fatal(err)
		}
	}
}

// start starts a process with an empty memory.
func (e *env) start() {
	m, err := redelivery.AppMetrics(noop.Meter{})
	if err != nil {
		e.Fatal(err)
	}
	e.source = &source{
		key:     types.NamespacedName{Namespace: system, Name: app},
		open:    func(string, provider.Credentials) (provider.DeliveryLog, error) { return e, nil },
		baseURL: func() string { return "https://github.com" },
		store:   store{redelivery.Store{ConfigMaps: e.kube.CoreV1().ConfigMaps(system)}}, secrets: e.kube.CoreV1(),
		claims: listers.NewRepositoryClaimLister(e.claims).RepositoryClaims(system), known: func() bool { return true },
		settings: e.settings.Load, everywhere: e.everywhere,
		repositories: repositories.Lister(e.repos, e.settings), recorder: e.events, clock: ticking{e.clock},
		logger: zap.NewNop().Sugar(), metrics: m, memory: newMemory(),
	}
	e.process = redelivery.NewReconciler(e.source, e.source.clock, stepTimeout)
	if err := e.process.Promote(pkgreconciler.UniversalBucket(),
		func(pkgreconciler.Bucket, types.NamespacedName) {}); err != nil {
		e.Fatal(err)
	}
}

// call counts a call of the process.
func (e *env) call() error {
	if e.calls > 0 {
		e.calls--
	}
	if e.calls == 0 {
		return errors.New("killed")
	}
	return nil
}

// Page implements provider.DeliveryLog. A cursor is how many attempts are older, so it stays the
// same while the log grows.
func (e *env) Page(_ context.Context, cursor string) ([]provider.Attempt, string, error) {
	if err := e.call(); err != nil {
		return nil, "", err
	}
	e.pages++
	end := len(e.log)
	if cursor != "" {
		end, _ = strconv.Atoi(cursor)
	}
	begin := max(0, end-pageSize)
	page := slices.Clone(e.log[begin:end])
	slices.Reverse(page)
	if begin == 0 {
		return page, "", nil
	}
	return page, strconv.Itoa(begin), nil
}

// Redeliver implements provider.DeliveryLog.
func (e *env) Redeliver(_ context.Context, id int64) error {
	if err := e.call(); err != nil && !e.after {
		return err
	}
	if e.gone {
		return fault.Ignoredf("DeliveryGone", "it is gone")
	}
	for _, a := range e.log {
		if a.ID == id {
			e.requests = append(e.requests, a.GUID)
			e.attempt(a.GUID, a.Repository, true, a.Starts)
			return nil
		}
	}
	e.Errorf("a redelivery of %d was requested, which never was", id)
	return nil
}

// attempt makes an attempt to deliver.
func (e *env) attempt(guid string, repository int64, again, starts bool) {
	status := http.StatusAccepted
	if e.receive != nil {
		status = e.receive(guid)
	}
	if status == http.StatusAccepted {
		e.recorded[guid]++
	}
	e.log = append(e.log, provider.Attempt{ID: int64(len(e.log) + 1), GUID: guid, At: e.clock.Now(), Status: status,
		Again: again, Starts: starts, Repository: repository})
}

// deliver makes a new event of a repository.
func (e *env) deliver(guid string, repository int64) { e.attempt(guid, repository, false, true) }

// miss makes a new event of a repository, which no receiver takes.
func (e *env) miss(guid string, repository int64) {
	e.receive = unreachable
	e.deliver(guid, repository)
	e.receive = nil
}

// unreachable is a receiver that is not reachable.
func unreachable(string) int { return 0 }

// refuses answers 503 to these deliveries.
func refuses(guids ...string) func(string) int {
	return func(guid string) int {
		if slices.Contains(guids, guid) {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
}

// reconcile returns after which time the key is requeued.
func (e *env) reconcile() time.Duration {
	e.Helper()
	if e.reconciles++; e.reconciles > 20_000 {
		e.Fatal("the process is requeued too often")
	}
	requeue, after := controller.IsRequeueKey(e.process.Reconcile(context.Background(), system+"/"+app))
	if !requeue || after <= 0 {
		e.Fatalf("the process is not requeued: %t, %v", requeue, after)
	}
	return after
}

// run lets the process work for so long.
func (e *env) run(long time.Duration) {
	e.Helper()
	for end := e.clock.Now().Add(long); ; {
		after := e.reconcile()
		if left := end.Sub(e.clock.Now()); after >= left {
			e.clock.Step(left)
			return
		}
		e.clock.Step(after)
	}
}

// signal lets a receiver signal.
func (e *env) signal() { e.clock.Step(e.process.Signal()) }
