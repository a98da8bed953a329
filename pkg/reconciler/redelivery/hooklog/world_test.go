// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
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
	"github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

const (
	system = "plumbline"
	here   = "https://hooks.example.com/in"
	// pageSize of the service of these tests.
	pageSize = 20
)

// world is a GitLab with one project, a receiver and an API server. A process is its reconciler.
type world struct {
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
	gone   bool // nothing is sent again
	// heads are the project's; moved is when those of pull requests did, and noHeads what looking
	// at them fails with.
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
	process  *Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	url := "https://gitlab.com/acme/team/app"
	repository := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "1", Generation: 1, CreationTimestamp: metav1.NewTime(begin)},
		Spec:       pacv1alpha1.RepositorySpec{URL: url, GitProvider: &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "token"}}},
	}
	w := &world{
		T: t, clock: clocktesting.NewFakeClock(begin.Add(time.Hour)), recorded: map[string]int{},
		hooks:  []provider.Hook{{ID: 3, Project: 5, URL: "https://chat.example.com/in", State: provider.HookCalled}, {ID: 7, Project: 5, URL: here + "/", State: provider.HookCalled, Pushes: true, Pulls: true}},
		repos:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers),
		claims: cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers),
		kube: fake.NewSimpleClientset(
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "token"}, Data: map[string][]byte{"provider.token": []byte("t")}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: asks.Ledger}, Data: map[string]string{"github.json": "theirs"}}),
		client: versioned.NewSimpleClientset(repository), others: map[int64]*[]provider.Attempt{}, events: record.NewFakeRecorder(100),
	}
	w.add(w.repos, repository)
	w.add(w.claims, &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
		Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: "team", Name: "app"}},
		Status:     v1alpha1.RepositoryClaimStatus{Bound: &v1alpha1.BoundProject{ProjectIdentity: v1alpha1.ProjectIdentity{ID: 5}, RepositoryUID: "1"}},
	})
	w.start()
	return w
}

func (w *world) add(to cache.Indexer, object any) {
	w.Helper()
	if err := to.Add(object); err != nil {
		w.Fatal(err)
	}
}

// start is a process that knows nothing.
func (w *world) start() {
	m, err := newMetrics(noop.Meter{})
	if err != nil {
		w.Fatal(err)
	}
	settings := config.Default()
	settings.WebhookURL = here
	w.process = &Reconciler{
		service: provider.Provider{
			Name: "gitlab", BaseURL: func(string, string, v1alpha1.Project) string { return "https://gitlab.com" },
			Hooks: func(_ string, p v1alpha1.Project, _ provider.Credentials) (provider.HookLog, error) {
				if p.Owner != "acme/team" || p.Name != "app" {
					w.Errorf("asked for %+v", p)
				}
				return w, nil
			},
		},
		namespace: system, settings: func() *config.Config { return settings }, credentials: credentials.Reader{Namespace: system, Kube: w.kube.CoreV1()}, givenUp: newGivenUp(w.kube.CoreV1().ConfigMaps(system)),
		cached:     cachesOf(w.repos, w.claims, system),
		conditions: conditionsOf(context.WithValue(context.Background(), client.Key{}, w.client), system, w.events), recorder: w.events,
		events: w.client.PlumblineV1alpha1().GitEvents(system), clock: w.clock, logger: zap.NewNop().Sugar(), metrics: m, pace: newPace(), known: map[types.NamespacedName]*memory{},
	}
	if err := w.process.Promote(pkgreconciler.UniversalBucket(), func(pkgreconciler.Bucket, types.NamespacedName) {}); err != nil {
		w.Fatal(err)
	}
}

// Hooks implements provider.HookLog.
func (w *world) Hooks(context.Context) ([]provider.Hook, error) {
	w.calls++
	return w.hooks, w.fails
}

// Attempts implements provider.HookLog.
func (w *world) Attempts(_ context.Context, hook int64, failed bool, page int) ([]provider.Attempt, bool, error) {
	w.calls++
	if !failed && w.unread != nil {
		return nil, false, w.unread
	}
	var all []provider.Attempt
	for _, a := range slices.Backward(*w.logOf(hook)) {
		if !failed || a.Status == 0 || a.Status >= 500 {
			all = append(all, a)
		}
	}
	from := min((page-1)*pageSize, len(all))
	to := min(from+pageSize, len(all))
	return all[from:to], to < len(all), w.fails
}

// Resend implements provider.HookLog.
func (w *world) Resend(_ context.Context, hook, attempt int64) (int, error) {
	w.calls++
	if w.fails != nil {
		return 0, w.fails
	}
	if w.gone {
		return 0, fault.Ignoredf("DeliveryGone", "gone")
	}
	log := *w.logOf(hook)
	i := slices.IndexFunc(log, func(a provider.Attempt) bool { return a.ID == attempt })
	if i < 0 {
		w.Fatalf("asked for attempt %d of webhook %d", attempt, hook)
	}
	guid := log[i].GUID
	w.resent, w.when = append(w.resent, guid), append(w.when, w.clock.Now())
	return w.deliverTo(hook, guid), nil
}

// deliver is what the service does to deliver.
func (w *world) deliver(guid string) int { return w.deliverTo(7, guid) }

func (w *world) deliverTo(hook int64, guid string) int {
	status := http.StatusAccepted
	if w.receive != nil {
		status = w.receive(guid)
	}
	if status == http.StatusAccepted {
		w.recorded[guid]++
	}
	log := w.logOf(hook)
	*log = append(*log, provider.Attempt{ID: int64(len(*log) + 1), GUID: guid, At: w.clock.Now(), Status: status, Starts: true})
	return status
}

// missed delivers some that nobody answers.
func (w *world) missed(names ...string) { w.missedBy(7, names...) }

func (w *world) missedBy(hook int64, names ...string) {
	was := w.receive
	w.receive = func(string) int { return 0 }
	for _, name := range names {
		w.deliverTo(hook, name)
	}
	w.receive = was
}

func refuses(guids ...string) func(string) int {
	return func(guid string) int {
		if slices.Contains(guids, guid) {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	requeue, after := controller.IsRequeueKey(w.process.Reconcile(context.Background(), "team/app"))
	if !requeue || after <= 0 {
		w.Fatalf("the process does not come back: %t, %v", requeue, after)
	}
	return after
}

// run lets the process work for so long.
func (w *world) run(long time.Duration) {
	w.Helper()
	for end, n := w.clock.Now().Add(long), 0; ; n++ {
		if n > 20_000 {
			w.Fatal("the process comes back too often")
		}
		after := w.reconcile()
		w.sync()
		if left := end.Sub(w.clock.Now()); after >= left {
			w.clock.Step(left)
			return
		}
		w.clock.Step(after)
	}
}

// sync brings the cache up to date.
func (w *world) sync() *pacv1alpha1.Repository {
	w.Helper()
	live, err := w.client.PipelinesascodeV1alpha1().Repositories("team").Get(context.Background(), "app", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.add(w.repos, live)
	return live
}

// heard lets a receiver say that it is there.
func (w *world) heard() { w.clock.Step(w.process.Heard()) }

// wantCondition checks status and reason, and returns the message; "" is no condition.
func (w *world) wantCondition(want string) string {
	w.Helper()
	is := w.sync().Status.GetCondition(pacv1alpha1.RepositoryWebhook)
	if is == nil {
		if want != "" {
			w.Errorf("no condition, want %s", want)
		}
		return ""
	}
	if got := fmt.Sprintf("%s %s", is.Status, is.Reason); got != want {
		w.Errorf("the condition is %s, want %s", got, want)
	}
	return is.Message
}

// statusWrites counts what was written.
func (w *world) statusWrites() (n int) {
	for _, a := range w.client.Actions() {
		if a.GetVerb() == "update" {
			n++
		}
	}
	return n
}

func (w *world) wantOnce(guids ...string) {
	w.Helper()
	for _, guid := range guids {
		if w.recorded[guid] != 1 {
			w.Errorf("%s is recorded %d times", guid, w.recorded[guid])
		}
	}
}
