// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblinefake "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

const (
	systemNamespace = "plumbline"
	webhookSecret   = "hunter2-the-webhook-secret"
	repositoryURL   = "https://git.example/acme/app"
	sha             = "0123456789012345678901234567890123456789"
	// retention is how long what was delivered is remembered.
	retention = 4 * 24 * time.Hour
	// bodyMarker is in every body and must never be logged or answered.
	bodyMarker = "body-marker-that-nobody-logs"
)

// env is an API server and what several receivers log and count.
type env struct {
	t         *testing.T
	client    *plumblinefake.Clientset
	copied    map[string]map[string]string // what controllers have copied: the data of Secrets by namespace/name
	refresher *secrets.Refresher
	clock     *clocktesting.FakePassiveClock
	ahead     time.Duration // of the API server's clock
	baseURL   string
	barred    string        // the namespace that no URL is listed for
	budget    *quota.Ledger // shared by them
	limits    quota.Limits
	cached    receiver.View // empty: every look-up is live

	// missed counts how often a handler says that a delivery is missed, unavailable the answers 503
	// that send has seen.
	missed, unavailable atomic.Int64

	mu      sync.Mutex
	seen    bytes.Buffer // all log lines and answers
	reader  *metric.ManualReader
	metrics *receiver.Metrics
}

func newEnv(t *testing.T) *env {
	w := &env{
		t: t, baseURL: "https://git.example", reader: metric.NewManualReader(),
		clock:  clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)),
		client: plumblinefake.NewSimpleClientset(claim(repositoryURL, "ci", "app"), repository("ci", "app", repositoryURL)),
		copied: map[string]map[string]string{systemNamespace + "/plumbline-github-app": {"webhook.secret": webhookSecret + "\n"}},
	}
	w.client.PrependReactor("create", "gitevents", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if event, is := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.GitEvent); is { //nolint:forcetypeassert // as it is for
			event.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(w.ahead).Truncate(time.Second))
		}
		return false, nil, nil
	})
	w.limits = quota.Limits{Events: 1000, Bytes: 1 << 30}
	w.budget = quota.New(func() quota.Limits { return w.limits }, w.clock, nil)
	w.refresher = secrets.NewRefresher(nil, w.clock, w.logger()) // it does not run: nothing is requested
	w.cached = receiver.LiveView(plumblinefake.NewSimpleClientset(), systemNamespace, 0)
	metrics, err := receiver.NewMetrics(metric.NewMeterProvider(metric.WithReader(w.reader)))
	if err != nil {
		t.Fatal(err)
	}
	w.metrics = metrics
	t.Cleanup(func() {
		if said, want := w.missed.Load(), w.unavailable.Load(); said < want {
			t.Errorf("%d deliveries were answered 503, and %d said to be missed", want, said)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if all := w.seen.String(); strings.Contains(all, webhookSecret) || strings.Contains(all, bodyMarker) {
			t.Errorf("a log line or an answer holds the secret or the body:\n%s", all)
		}
	})
	return w
}

func claim(url, namespace, name string) *v1alpha1.RepositoryClaim {
	return &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: v1alpha1.ClaimName(url)},
		Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: namespace, Name: name}},
	}
}

func repository(namespace, name, url string) *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1"},
		Spec:       pacv1alpha1.RepositorySpec{URL: url},
	}
}

// Write and Sync make env a zap sink.
func (w *env) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Write(line)
}

func (w *env) Sync() error { return nil }

func (w *env) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.String()
}

func (w *env) logger() *zap.SugaredLogger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), w, zap.DebugLevel)).Sugar()
}

func (w *env) recorder() *recorder.Recorder {
	return &recorder.Recorder{
		Namespace: systemNamespace, Clock: w.clock, Quota: w.budget, Retention: func() time.Duration { return retention },
		Events:   w.client.PlumblineV1alpha1().GitEvents(systemNamespace),
		Payloads: w.client.PlumblineV1alpha1().EventPayloads(systemNamespace), Tombstones: w.client.PlumblineV1alpha1().TombstonePages(systemNamespace),
	}
}

// replica returns one more receiver.
func (w *env) replica() *receiver.Handler {
	return receiver.NewHandler(receiver.Options{
		Providers: []provider.Provider{{Name: "test", Webhook: service{}}},
		BaseURL:   func(string) string { return w.baseURL },
		Secret:    secrets.AppSecret{Copies: w.copies(), Namespace: systemNamespace, Name: "plumbline-github-app"},
		Lookup: receiver.Lookup{
			Cached: w.cached, Live: receiver.LiveView(w.client, systemNamespace, 0), Unverified: receiver.LiveView(w.client, systemNamespace, 0),
			Neighbours:  receiver.NeighboursIn(w.repositories()),
			CannotClaim: func(_, namespace string) bool { return namespace == w.barred },
		},
		Recorder: w.recorder(), Metrics: w.metrics, Logger: w.logger(), Clock: w.clock,
		Undelivered: func() { w.missed.Add(1) },
	}).AnswerUnverifiedAfter(time.Millisecond)
}

// repositories is the cache of all Repositories that there are now.
func (w *env) repositories() cache.Indexer {
	w.t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, receiver.RepositoryIndexers())
	for _, obj := range w.all(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), "Repository") {
		if err := indexer.Add(obj); err != nil {
			w.t.Fatal(err)
		}
	}
	return indexer
}

// all is what the API server has of a kind; it is no call of anybody's.
func (w *env) all(resource schema.GroupVersionResource, kind string) []runtime.Object {
	w.t.Helper()
	list, err := w.client.Tracker().List(resource, resource.GroupVersion().WithKind(kind), "")
	if err != nil {
		w.t.Fatal(err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		w.t.Fatal(err)
	}
	return objects
}

// send has a handler answer a request and keeps the answer for the search for secrets.
func (w *env) send(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	if answer.Code == http.StatusServiceUnavailable {
		w.unavailable.Add(1)
	}
	_, _ = fmt.Fprintf(w, "answer: %v %s\n", answer.Header(), answer.Body.String()) // a buffer
	return answer
}

// expect sends to a new replica and checks the status and the form of the answer.
func (w *env) expect(status int, d delivery) *httptest.ResponseRecorder {
	w.t.Helper()
	answer := w.send(w.replica(), d.request())
	w.check(status, answer)
	return answer
}

func (w *env) check(status int, answer *httptest.ResponseRecorder) {
	w.t.Helper()
	var body struct {
		Status  int
		Message string
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || body.Message == "" || body.Status != answer.Code {
		w.t.Errorf("body %q (%v), want JSON with status %d and a message", answer.Body.String(), err, answer.Code)
	}
	if got := answer.Result().Header.Get("Content-Type"); got != "application/json" {
		w.t.Errorf("Content-Type %q", got)
	}
	if has := answer.Result().Header.Get("Retry-After") != ""; has != (status == http.StatusServiceUnavailable) {
		w.t.Errorf("Retry-After set: %v for status %d", has, status)
	}
	if answer.Code != status {
		w.t.Errorf("answered %d %s, want %d", answer.Code, body.Message, status)
	}
}

func (w *env) events() []v1alpha1.GitEvent {
	w.t.Helper()
	list, err := w.client.PlumblineV1alpha1().GitEvents(systemNamespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// wantEvents checks how many records there are.
func (w *env) wantEvents(n int) []v1alpha1.GitEvent {
	w.t.Helper()
	events := w.events()
	if len(events) != n {
		w.t.Fatalf("%d GitEvents, want %d", len(events), n)
	}
	return events
}

// fail makes the API server answer err to a verb on a resource.
func (w *env) fail(verb, resource string, err error) {
	w.client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// counted returns how many deliveries were counted with an outcome and reason.
func (w *env) counted(outcome, reason string) int64 {
	return w.sum("plumbline.receiver.deliveries", map[string]string{"outcome": outcome, "reason": reason})
}

// sum adds up a counter's points that have these attributes.
func (w *env) sum(name string, want map[string]string) int64 {
	w.t.Helper()
	var data metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &data); err != nil {
		w.t.Fatal(err)
	}
	var n int64
	for _, m := range data.ScopeMetrics[0].Metrics {
		sum, ok := m.Data.(metricdata.Sum[int64])
		if !ok || m.Name != name {
			continue
		}
		for _, p := range sum.DataPoints {
			fits := true
			for key, value := range want {
				got, _ := p.Attributes.Value(attribute.Key(key))
				fits = fits && got.AsString() == value
			}
			if fits {
				n += p.Value
			}
		}
	}
	return n
}
