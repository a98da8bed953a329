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
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

const (
	system = "plumbline"
	app    = "plumbline-github-app"
	// pageSize of the service of these tests.
	pageSize = 20
)

// world is a service with a log, a receiver, and an API server. A process is its reconciler.
type world struct {
	settings *config.Store
	*testing.T
	clock *clocktesting.FakeClock
	kube  *fake.Clientset
	log   []provider.Attempt // oldest first
	// receive answers a delivery; nil is 202 to all.
	receive  func(guid string) int
	recorded map[string]int // acknowledged attempts
	asked    []string       // for which redeliveries were asked, in order
	pages    int
	gone     bool // the service has forgotten everything
	// calls are counted down; the last one ends the process, before it has an effect or after it.
	calls         int
	after         bool
	claims, repos cache.Indexer
	events        *record.FakeRecorder
	process       *Reconciler
	// reconciles are counted: a process that comes back at once for ever is stopped.
	reconciles int
}

// ticking is a clock that goes on, as real ones do, whenever somebody looks at it.
type ticking struct{ *clocktesting.FakeClock }

func (c ticking) Now() time.Time {
	c.Step(time.Nanosecond)
	return c.FakeClock.Now()
}

var errKilled = errors.New("killed")

func newWorld(t *testing.T) *world {
	t.Helper()
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	w := &world{
		T: t, clock: clocktesting.NewFakeClock(begin), recorded: map[string]int{}, calls: -1,
		claims: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		repos:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		events: record.NewFakeRecorder(100), settings: config.NewStore(zap.NewNop().Sugar()),
		kube: fake.NewSimpleClientset(
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: asks.Ledger, CreationTimestamp: metav1.NewTime(begin)}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: app}, Data: map[string][]byte{"github-application-id": []byte("7"), "github-private-key": []byte("key")}}),
	}
	w.kube.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := w.call()
		if err == nil {
			return false, nil, nil
		}
		if update, ok := a.(clienttesting.UpdateAction); ok && w.after {
			if err := w.kube.Tracker().Update(a.GetResource(), update.GetObject(), system); err != nil {
				t.Error(err)
			}
		}
		return true, nil, err
	})
	for id := range int64(3) {
		w.serve(id + 1)
	}
	w.clock.Step(time.Hour)
	w.start()
	return w
}

// serve makes a Repository whose URL is bound to the number.
func (w *world) serve(id int64) {
	w.Helper()
	name := fmt.Sprint("app-", id)
	url := "https://github.com/acme/" + name
	for indexer, object := range map[cache.Indexer]any{
		w.repos: &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: pacv1alpha1.RepositorySpec{URL: url}},
		w.claims: &v1alpha1.RepositoryClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
			Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: "team", Name: name}},
			Status:     v1alpha1.RepositoryClaimStatus{Bound: &v1alpha1.BoundProject{ProjectIdentity: v1alpha1.ProjectIdentity{ID: id}}},
		},
	} {
		if err := indexer.Add(object); err != nil {
			w.Fatal(err)
		}
	}
}

// start is a process that knows nothing.
func (w *world) start() {
	m, err := newMetrics(noop.Meter{})
	if err != nil {
		w.Fatal(err)
	}
	w.process = &Reconciler{
		key:     types.NamespacedName{Namespace: system, Name: app},
		open:    func(string, provider.Credentials) (provider.DeliveryLog, error) { return w, nil },
		baseURL: func() string { return "https://github.com" }, store: store{w.kube.CoreV1().ConfigMaps(system)}, secrets: w.kube.CoreV1(),
		claims: listers.NewRepositoryClaimLister(w.claims).RepositoryClaims(system), known: func() bool { return true }, namespaces: func() config.Namespaces { return w.settings.Load().Namespaces },
		repositories: repositories.Lister(w.repos, w.settings), recorder: w.events, clock: ticking{w.clock}, logger: zap.NewNop().Sugar(), metrics: m, line: newLine(),
	}
	if err := w.process.Promote(pkgreconciler.UniversalBucket(), func(pkgreconciler.Bucket, types.NamespacedName) {}); err != nil {
		w.Fatal(err)
	}
}

// call counts a call of the process.
func (w *world) call() error {
	if w.calls > 0 {
		w.calls--
	}
	if w.calls == 0 {
		return errKilled
	}
	return nil
}

// Page implements provider.DeliveryLog. A cursor is how many attempts are older, so it stays the
// same while the log grows.
func (w *world) Page(_ context.Context, cursor string) ([]provider.Attempt, string, error) {
	if err := w.call(); err != nil {
		return nil, "", err
	}
	w.pages++
	end := len(w.log)
	if cursor != "" {
		end, _ = strconv.Atoi(cursor)
	}
	begin := max(0, end-pageSize)
	page := slices.Clone(w.log[begin:end])
	slices.Reverse(page)
	if begin == 0 {
		return page, "", nil
	}
	return page, strconv.Itoa(begin), nil
}

// Redeliver implements provider.DeliveryLog.
func (w *world) Redeliver(_ context.Context, id int64) error {
	if err := w.call(); err != nil && !w.after {
		return err
	}
	if w.gone {
		return fault.Ignoredf("DeliveryGone", "it is gone")
	}
	for _, a := range w.log {
		if a.ID == id {
			w.asked = append(w.asked, a.GUID)
			w.attempt(a.GUID, a.Repository, true, a.Starts)
			return nil
		}
	}
	w.Errorf("a redelivery of %d was asked for, which never was", id)
	return nil
}

// attempt is what the service does to deliver.
func (w *world) attempt(guid string, repository int64, again, starts bool) {
	status := http.StatusAccepted
	if w.receive != nil {
		status = w.receive(guid)
	}
	if status == http.StatusAccepted {
		w.recorded[guid]++
	}
	w.log = append(w.log, provider.Attempt{ID: int64(len(w.log) + 1), GUID: guid, At: w.clock.Now(), Status: status, Again: again, Starts: starts, Repository: repository})
}

// deliver is a new event of a repository.
func (w *world) deliver(guid string, repository int64) { w.attempt(guid, repository, false, true) }

// nobody is there.
func nobody(string) int { return 0 }

// refuses answers 503 to these deliveries.
func refuses(guids ...string) func(string) int {
	return func(guid string) int {
		if slices.Contains(guids, guid) {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
}

// reconcile returns when the process wants to be called again.
func (w *world) reconcile() time.Duration {
	w.Helper()
	if w.reconciles++; w.reconciles > 20_000 {
		w.Fatal("the process comes back too often")
	}
	requeue, after := controller.IsRequeueKey(w.process.Reconcile(context.Background(), system+"/"+app))
	if !requeue || after <= 0 {
		w.Fatalf("the process does not come back: %t, %v", requeue, after)
	}
	return after
}

// run lets the process work for so long.
func (w *world) run(long time.Duration) {
	w.Helper()
	for end := w.clock.Now().Add(long); ; {
		after := w.reconcile()
		if left := end.Sub(w.clock.Now()); after >= left {
			w.clock.Step(left)
			return
		}
		w.clock.Step(after)
	}
}

// heard lets a receiver say that it is there.
func (w *world) heard() { w.clock.Step(w.process.Heard()) }

func (w *world) missing() []missed {
	w.Helper()
	l, _, err := w.process.store.load(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	return l.Missed
}

func (w *world) wantRecorded(guids ...string) {
	w.Helper()
	for _, guid := range guids {
		if w.recorded[guid] == 0 {
			w.Errorf("%s is not recorded", guid)
		}
	}
}

func (w *world) bucket() pkgreconciler.Bucket { return pkgreconciler.UniversalBucket() }

// claim returns the claim of a Repository that serve has made.
func (w *world) claim(id int64) *v1alpha1.RepositoryClaim {
	w.Helper()
	found, exists, err := w.claims.GetByKey(system + "/" + v1alpha1.ClaimName(fmt.Sprint("https://github.com/acme/app-", id)))
	if err != nil || !exists {
		w.Fatal("no claim")
	}
	return found.(*v1alpha1.RepositoryClaim)
}

// unbind makes a URL one of which nothing was planned yet.
func (w *world) unbind(id int64) {
	w.Helper()
	claim := w.claim(id).DeepCopy()
	claim.Status.Bound = nil
	if err := w.claims.Update(claim); err != nil {
		w.Fatal(err)
	}
}

// unclaim makes a Repository one that the controllers have not seen yet.
func (w *world) unclaim(id int64) {
	w.Helper()
	if err := w.claims.Delete(w.claim(id)); err != nil {
		w.Fatal(err)
	}
}
